"""The page on `Scheduler` shows the rows that were measured."""

from __future__ import annotations

from benchmarks.online_page import latency, write_page
from benchmarks.online_rows import OnlineRow, add, read


def test_page_is_of_the_rows() -> None:
    """`python -m benchmarks online page` would change nothing."""
    assert write_page(check=True) == 0


def test_rows_and_latencies(tmp_path: object) -> None:
    """Rows come back, repetitions replace the first; each size is a row of the table, in milliseconds."""
    path = tmp_path / "rows.csv"  # type: ignore[operator]
    rows = [
        OnlineRow("d", "c", "latency", f"{n} GPUs, 5,000 jobs", "hybrid", n, 0, float(n**0.5), 1.0, 1.0, 0.0, 5, 1.0)
        for n in (100, 10_000)
    ]
    add([rows[0], *rows], path)
    assert read(path) == rows
    assert latency(rows).splitlines()[2:] == ["| 100 | 10000.00 | 1000.00 |", "| 10,000 | 100000.00 | 1000.00 |"]
