"""Where the repository is, and which commit last changed what a benchmark measures."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
MEASURED = ("instances", "solvers", "simulator", "learned", "hybrid", "api")
"""What can change a figure: a commit elsewhere leaves rows up to date."""


def measured_commit(root: Path = ROOT) -> str:
    """Return the short hash of the last commit that changed `MEASURED`, with a + if the working tree differs."""
    commit = _git(root, "log", "-1", "--format=%h", "--abbrev=9", "--", *MEASURED)
    return commit + ("+" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
