"""How long the agents of a market were measured to take, in a table."""

from __future__ import annotations

from benchmarks.found import Found
from benchmarks.market import FAST, LEARNED, STUDY, latency, measured, tasks
from benchmarks.rows import Row, Task
from benchmarks.study import Options


def test_a_line_a_size() -> None:
    """Sizes are in the order of servers; of two measurements the newer one counts."""
    figures = dict(zip(STUDY.figures, (8, 6, 0.25, 1.4, 2.1, 3.0, 7.8, 1.5, 2.0, 11.0, 200.0), strict=True))
    rows = [Row(Task(f"{n}", FAST, 0), figures | {"bid": x}) for n, x in ((10_000, 9.0), (64, 9.0), (64, 1.4))]
    lines = latency(Found(rows, STUDY.alike)).splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == ["| 512", "| 80,000"]
    assert lines[0] == "| 512 | 8 | 6 | 1.4, 2.1 | 3.0, 7.8 | 2, 2 |"


def test_agents_are_timed() -> None:
    """Agents of eight servers each are asked, and take some time; bids by learned speeds are run if asked for."""
    found = measured(16)
    assert found["agents"] == 2 and 0 < found["bid"] <= found["bid_p99"] and tuple(found) == STUDY.figures
    assert [x.policy for x in tasks(Options(("64",), (LEARNED,)))] == [LEARNED]
