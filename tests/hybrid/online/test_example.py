"""The loop in the documentation runs, and does every job."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "scheduler_loop.py"


def test_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """All 200 jobs come, run and end, and the last decision is explained."""
    left = runpy.run_path(str(EXAMPLE))
    assert not left["jobs"]
    assert not left["scheduler"].running
    assert not left["scheduler"].waiting
    assert "decision 400" in capsys.readouterr().out
