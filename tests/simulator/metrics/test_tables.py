"""Tables of jobs: what is in them, and that files give it back."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gangplan.instances.placement import Fleet
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import EngineScheduler, Outages
from gangplan.simulator.engine import simulate as run_engine
from gangplan.simulator.metrics import columns, job_rows, summary, to_csv, to_parquet
from gangplan.simulator.trace import Outcome, simulate


@pytest.fixture
def outcome() -> Outcome:
    """Return a gang that a failure stops, a job beside it with a name that is hard on CSV, and one that is rejected."""
    jobs = Workload(
        ('a,"\n1', "b", "c"),
        np.array([0.0, 0.5, 1.0]),
        [4, 1, 1],
        np.array([10.0, 3.25, 1.0]),
        queue=("q1", "", "q2"),
        model=("bert", "bert", ""),
    )

    class Picky:
        def admit(self, job: int, view: Any) -> bool:
            return job != 2

    outages = Outages(listed=((1, 4.0, 6.0),))
    return run_engine(jobs, Fleet.regular(1, 3, 2), EngineScheduler((Picky(),), "overtake", True), outages=outages)


def test_by_hand(outcome: Outcome) -> None:
    """Every column, as worked out on paper."""
    found = job_rows(outcome)
    assert found == {
        "job_id": ['a,"\n1', "b", "c"],
        "submit": [0.0, 0.5, 1.0],
        # when node 1 fails the gang loses all that it did, and starts again on 0 and 2, as b is done
        "start": [0.0, 0.5, None],
        "finish": [14.0, 3.75, None],
        "jct": [14.0, 3.25, None],
        "wait": [0.0, 0.0, None],
        "gpus": [4, 1, 1],
        "queue": ["q1", "", "q2"],
        "model": ["bert", "bert", ""],
        "rejected": [False, False, True],
        "preemptions": [1, 0, 0],
        "gpu_seconds": [56.0, 3.25, 0.0],
        "nodes": [[0, 1, 2], [2], []],
    }


def test_csv(outcome: Outcome) -> None:
    """A CSV reader gets back every value, of two policies below one another."""
    found = list(csv.DictReader(StringIO(to_csv(columns({"x": outcome, "y": outcome})).decode())))
    assert [row["policy"] for row in found] == ["x"] * 3 + ["y"] * 3
    assert [row["job_id"] for row in found[:3]] == ['a,"\n1', "b", "c"]
    assert [row["jct"] for row in found[:3]] == ["14.0", "3.25", ""]
    assert [row["nodes"] for row in found[3:]] == ["0 1 2", "2", ""]
    assert [row["rejected"] for row in found[:3]] == ["0", "0", "1"]


def test_parquet(outcome: Outcome) -> None:
    """A Parquet reader gets back the same values, with kinds that say what they are."""
    table = columns({"x": outcome, "y": outcome})
    found = parquet.read_table(BytesIO(to_parquet(table)))
    assert found.to_pydict() == table
    kinds = {field.name: str(field.type) for field in found.schema}
    assert (kinds["submit"], kinds["gpus"], kinds["rejected"]) == ("double", "int32", "bool")
    assert kinds["nodes"].startswith("list<")


def test_nothing_ran(outcome: Outcome) -> None:
    """Columns keep their kinds where no job ran."""
    jobs = outcome.workload.take(np.array([2]))
    none = np.zeros(0)
    empty = Outcome(
        jobs,
        outcome.room,
        np.full(1, np.inf),
        np.full(1, np.inf),
        *(none.astype(np.int32) for _ in range(4)),
        *(none for _ in range(4)),
    )
    table = columns({"x": empty})
    assert (table["jct"], table["nodes"]) == ([None], [[]])
    assert str(parquet.read_table(BytesIO(to_parquet(table))).schema.field("jct").type) == "double"


def test_philly(data: Path) -> None:
    """Figures of 82,247 jobs are those of their rows."""
    workload = read_trace(data / "philly" / "philly.csv.gz").workload
    found = simulate(workload, 200, 8, discipline="overtake", consolidate=True)
    fleet = Fleet.regular(10, 20)
    figures = summary(found, fleet)
    rows = job_rows(found)
    assert np.mean(np.array(rows["jct"])) == pytest.approx(figures.mean_jct)
    assert sum(rows["gpu_seconds"]) == pytest.approx(figures.work_rate * (figures.makespan - workload.submit.min()))


def test_users_and_titles() -> None:
    """Users and titles are columns where the trace names any."""
    jobs = Workload(("a", "b"), np.zeros(2), np.array([1, 1]), np.ones(2), user=("ann", ""))
    rows = job_rows(simulate(jobs, 1, 2))
    assert rows["user"] == ["ann", ""] and "title" not in rows
    assert to_parquet(columns({"fifo": simulate(jobs, 1, 2)}))
