"""Seeds of which each run plays a share, chosen by the commit, so that in the course of commits all are played."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
CHOICE = "GANGPLAN_TEST_SEEDS"
"""The environment variable that chooses the share: a commit, of which the first digits count, or `all`."""
ALL = "all"
_DIGITS = 12


def commit() -> str:
    """Return the commit of the clone, zeros where there is none."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "0" * _DIGITS


def choose(everything: bool) -> str:
    """Choose the share for this process and for those it starts, unless it is chosen; return the choice."""
    if everything:
        os.environ[CHOICE] = ALL
    return os.environ.setdefault(CHOICE, commit()[:_DIGITS])


def some(seeds: Sequence[T], share: int = 10) -> Sequence[T]:
    """Return one of each `share` seeds, other ones by another commit; with `--all` return all of them."""
    choice = os.environ.get(CHOICE, ALL)
    return seeds if choice == ALL else seeds[int(choice[:_DIGITS], 16) % share :: share]


def examples(count: int) -> int:
    """Return how many examples hypothesis draws, which are others each time: a third, but 20; with `--all`, `count`."""
    return count if os.environ.get(CHOICE, ALL) == ALL else max(count // 3, 20)
