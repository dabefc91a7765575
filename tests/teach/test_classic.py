"""Logs in the Standard Workload Format come in and go out as jobs over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, SchedulePlan, ScheduleProblem

JOBS = (
    MoldableJob("a", (2,), (4.0,), release=0.0),
    MoldableJob("b", (2,), (3.5,), release=1.25),
    MoldableJob("c", (1,), (2.0,), release=5.0),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Releases, sizes and durations come back to the last digit, the names as numbers."""
    problem = ScheduleProblem(JOBS, Pool(2), "mean_jct")
    teach.write_swf(problem, tmp_path / "x.swf")
    again = teach.read_swf(tmp_path / "x.swf", 2)
    assert again.goal == "mean_jct" and again.capacity == Pool(2)
    assert [(j.degrees, j.durations, j.release) for j in again.jobs] == [
        (j.degrees, j.durations, j.release) for j in JOBS
    ]
    assert [j.name for j in again.jobs] == ["1", "2", "3"]


def test_a_plan_says_wait_and_degree(tmp_path: Path) -> None:
    """With a plan the log has its waits and degrees, and who is left out is cancelled, no job to a reader."""
    jobs = (
        MoldableJob("a", (1, 2), (4.0, 3.0)),
        MoldableJob("b", (2,), (1.0,), 1.0),
        MoldableJob("c", (1,), (2.0,), value=1.0),
    )
    problem = ScheduleProblem(jobs, Pool(2))
    plan = SchedulePlan(("a", "b", "c"), [1, 0, -1], [0.0, 3.0, 0.0])
    teach.write_swf(problem, tmp_path / "x.swf", plan)
    rows = [line.split() for line in (tmp_path / "x.swf").read_text().splitlines() if not line.startswith(";")]
    assert all(len(row) == 18 for row in rows)
    assert [(row[2], row[3], row[4]) for row in rows] == [("0", "3", "2"), ("2", "1", "2"), ("-1", "0", "-1")]
    trace = read_trace(tmp_path / "x.swf")
    assert trace.workload.names == ("1", "2") and sum(trace.left_out.values()) == 1
    assert trace.workload.gpus.tolist() == [2, 2]


def test_what_has_no_column(tmp_path: Path) -> None:
    """Several degrees without a plan, and a plan that is infeasible, are refused."""
    problem = ScheduleProblem((MoldableJob("a", (1, 2), (4.0, 3.0)),), NodePool(1, 2))
    with pytest.raises(InstanceError, match=r"jobs\[0\].degrees: \(1, 2\) are several: give a plan"):
        teach.write_swf(problem, tmp_path / "x.swf")
    with pytest.raises(InstanceError, match="plan: "):
        teach.write_swf(problem, tmp_path / "x.swf", SchedulePlan(("a",), [-1], [0.0]))
    assert list(tmp_path.iterdir()) == []


def test_a_bad_log_names_line_and_value(tmp_path: Path) -> None:
    """The reader of traces says which line is wrong."""
    (tmp_path / "x.swf").write_text(
        "; Version: 2.2\n1 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n2 x 0 5 1 " + "-1 " * 13 + "\n"
    )
    with pytest.raises(InstanceError, match=r"x.swf.*line 3.*submit.*'x'"):
        teach.read_swf(tmp_path / "x.swf", 2)
