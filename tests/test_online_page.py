"""The page on `Scheduler` shows the rows that were measured."""

from __future__ import annotations

import pytest

from benchmarks.online_page import slope, write_page
from benchmarks.online_rows import OnlineRow, add, read


def test_page_is_of_the_rows() -> None:
    """`python -m benchmarks online page` would change nothing."""
    assert write_page(check=True) == 0


def test_rows_and_slope(tmp_path: object) -> None:
    """Rows come back, repetitions replace the first; a square root has slope 1/2 beside a row of fewer jobs."""
    path = tmp_path / "rows.csv"  # type: ignore[operator]
    rows = [
        OnlineRow("d", "c", "latency", f"{n} GPUs, 5,000 jobs", "hybrid", n, 0, float(n**0.5), 1.0, 1.0, 0.0, 5, 1.0)
        for n in (100, 10_000)
    ]
    add([rows[0], *rows], path)
    assert read(path) == rows
    other = OnlineRow("d", "c", "latency", "9 GPUs, 1,000 jobs", "hybrid", 9, 0, 1e3, 1.0, 1.0, 0.0, 5, 1.0)
    assert slope([*rows, other], "value", " 5,000 jobs") == pytest.approx(0.5)
