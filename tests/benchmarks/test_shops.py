"""Job shops beside ten lines of CP-SAT."""

from __future__ import annotations

from pathlib import Path

from benchmarks.shops import compared


def test_ft06_is_proved_by_both(tmp_path: Path) -> None:
    """One round of ft06 in new processes says that both prove it, and how long they take."""
    line = compared(tmp_path, rounds=1).splitlines()[-1]
    assert "ft06" in line and "OPTIMAL (" in line and "inf" not in line
