"""How long the agents of a market were measured to take, in a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.market import MarketRow, latency
from benchmarks.records import append_records

ROW = MarketRow(64, 8, 6, 0.25, 1.4, 2.1, 3.0, 7.8, 1.5, 2.0, 11.0, 200.0, "d", "c")


def test_newest_row_of_a_size(tmp_path: Path) -> None:
    """Each size is a line, in the order of servers; of two measurements the newer one counts."""
    rows = [replace(ROW, servers=10_000), replace(ROW, bid=9.0), ROW]
    append_records(rows, tmp_path / "market.csv")
    lines = latency(tmp_path / "market.csv").splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == ["| 512", "| 80,000"]
    assert lines[0] == "| 512 | 8 | 6 | 25% | 1.4, 2.1 | 3.0, 7.8 | 2, 2 | 11, 200 |"
