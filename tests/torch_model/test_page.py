"""The page on PyTorch models tells the truth: its commands and its code work, in its order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from gangplan.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every gangplan command of the page succeeds, in a folder that has the documentation, and then its Python."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    space: dict[str, Any] = {"__name__": "snippet"}
    commands = 0
    for language, code in BLOCK.findall((ROOT / "docs" / "torch.md").read_text()):
        if language == "py":
            exec(compile(code, "docs/torch.md", "exec"), space)
            continue
        for line in code.splitlines():
            if line.startswith("gangplan "):
                commands += 1
                assert main(line.split()[1:]) == 0, f"{line}\n{capsys.readouterr()}"
    assert commands == 4 and "stages" in capsys.readouterr().out


def test_run_lists_gpt2() -> None:
    """`./run gpt2` is there, and `./run` says what it does."""
    said = subprocess.run(["sh", ROOT / "run"], capture_output=True, text=True, check=True).stdout
    assert "./run gpt2" in said and "GPT-2" in said
