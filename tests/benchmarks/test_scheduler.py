"""The tables on `Scheduler` show the rows that were measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.found import Found
from benchmarks.rows import Row, Task
from benchmarks.scheduler import STUDY, measure, tasks
from benchmarks.scheduler_tables import POLICY, STOPS, cluster, latency, traces
from benchmarks.study import Options


def test_latencies() -> None:
    """Each size is a row of the table, in milliseconds, without stops and with them."""
    rows = [
        Row(Task(cluster(gpus) + end, POLICY, 0), {"p99": gpus**0.5, "median": 1.0})
        for gpus in (1_000, 10_000)
        for end in ("", STOPS)
    ]
    lines = latency(Found(rows, STUDY.alike)).splitlines()[2:]
    assert lines[1] == "| 10,000 | 100000.00 | 1000.00 | 100000.00 | 1000.00 |" and len(lines) == 2


def test_scheduler_is_against_the_best_rule() -> None:
    """The best rule that stops nobody stands first, and how much less `Scheduler` has."""
    name, figures = "openb, pods that ended, whole GPUs", {"jobs": 9.0, "bound": 1.0}
    means = {"sjf easy": 120.0, "fifo easy": 100.0, "srtf overtake 300": 80.0, "sjf overtake 1800": 90.0}
    means |= {"Scheduler hybrid": 90.0, "Scheduler hybrid 300": 88.0}
    rows = [Row(Task(name, policy, 0), figures | {"mean_jct": x}) for policy, x in means.items()]
    line = traces(Found(rows, STUDY.alike)).splitlines()[2]
    assert line == "| openb | 100 | 90 (-10.0%) | 88 (+10.0%) | 1 |"


def test_a_trace_is_simulated(tmp_path: Path) -> None:
    """A rule on a trace has a mean above its bound; where data is not there, the trace is left out."""
    said, name = list[str](), "openb, pods that ended, whole GPUs"
    options = Options((name,), ("sjf easy",), rows=tmp_path / "rows.csv")
    assert [x.policy for x in tasks(options)] == ["sjf easy"]
    if options.data.is_dir():
        found = measure(Task(name, "sjf easy", 0), options)
        assert (found["mean_jct"] or 0.0) > (found["bound"] or 0.0) > 0
    gone = Options((name,), ("sjf easy",), rows=tmp_path / "rows.csv", data=tmp_path)
    assert STUDY.run(gone, said.append) == [] and "left out, data: there is no openb" in said[0]
