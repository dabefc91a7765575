"""LEKIN's files come in and go out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.instances import InstanceError, StepProblem
from gangplan.instances.readers.lekin import read_lekin, write_lekin
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem

JOBS = """Shop:               Parallel
Job:                J1
  RGB:                0;255;255
  Release:            3
  Due:                10
  Weight:             2
  Session:            0
  Oper:               W1;5;A
Job:                J2
  Release:            0
  Due:                4
  Weight:             1
  Oper:               W1;7;A
"""
MACHINES = """Ordering:           A
Workcenter:         W1
  Release:            0
  Status:             A
  Machine:            W1.01
    Release:            0
    Status:             A
  Machine:            W1.02
    Release:            0
    Status:             A
"""
TWO = MACHINES + "Workcenter:         W2\n  Machine:            W2.01\n"
ROUTE = JOBS.replace("Release:            3", "Release:            0").replace("W1;7;A", "W2;7;A\n  Oper: W1;1;A")


def files(folder: Path, jobs: str, machines: str) -> tuple[Path, Path]:
    """Write both files."""
    (folder / "x.job").write_text(jobs)
    (folder / "x.mch").write_text(machines)
    return folder / "x.job", folder / "x.mch"


@pytest.mark.parametrize("due", ["drop", "deadline"])
def test_parallel_machines(tmp_path: Path, due: str) -> None:
    """One work centre is a pool: releases and weights are kept, due dates dropped or strict."""
    problem = read_lekin(*files(tmp_path, JOBS, MACHINES), due)
    assert isinstance(problem, ScheduleProblem) and problem.capacity == Pool(2)
    kept = (10.0, 4.0) if due == "deadline" else (None, None)
    wanted = (
        MoldableJob("J1", (1,), (5.0,), 3.0, 2.0, kept[0]),
        MoldableJob("J2", (1,), (7.0,), 0.0, 1.0, kept[1]),
    )
    assert problem.jobs == wanted
    write_lekin(problem, tmp_path / "y.job", tmp_path / "y.mch")
    again = read_lekin(tmp_path / "y.job", tmp_path / "y.mch", due)
    assert isinstance(again, ScheduleProblem) and (again.jobs, again.capacity) == (problem.jobs, problem.capacity)


def test_a_shop_with_parallel_machines(tmp_path: Path) -> None:
    """Several work centres are device types with as many devices as machines, and routes are chains."""
    problem = read_lekin(*files(tmp_path, ROUTE, TWO))
    assert isinstance(problem, StepProblem)
    assert problem.graph.names == ("J1.0", "J2.0", "J2.1") and problem.cluster.counts().tolist() == [2, 1]
    assert list(zip(problem.graph.source.tolist(), problem.graph.target.tolist(), strict=True)) == [(1, 2)]
    write_lekin(problem, tmp_path / "y.job", tmp_path / "y.mch")
    again = read_lekin(tmp_path / "y.job", tmp_path / "y.mch")
    assert isinstance(again, StepProblem) and again.graph.names == problem.graph.names
    assert (again.time() == problem.time()).all() and again.cluster.counts().tolist() == [2, 1]


def test_a_job_shop_goes_to_lekin(tmp_path: Path) -> None:
    """A job shop of the standard format comes back through LEKIN's files."""
    problem = parse_jobshop("2 2\n0 3 1 2\n1 2 0 4\n")
    write_lekin(problem, tmp_path / "y.job", tmp_path / "y.mch")
    again = read_lekin(tmp_path / "y.job", tmp_path / "y.mch")
    assert isinstance(again, StepProblem) and (again.time() == problem.time()).all()


@pytest.mark.parametrize(
    ("jobs", "machines", "words"),
    [
        (JOBS, "Ordering: A\n", "x.mch: Workcenter: the file has none"),
        (
            JOBS,
            MACHINES.replace("    Release:            0", "    Release: 4", 1),
            "x.mch: line 6: Release: '4' is not 0",
        ),
        (JOBS, MACHINES + "  Setup: A;B;3\n", "x.mch: line 11: Setup: 'A;B;3': there are no set-up times"),
        (JOBS, MACHINES + MACHINES, "x.mch: line 12: Workcenter: 'W1' is a duplicate"),
        ("Shop: Job\n", MACHINES, "x.job: Job: the file has none"),
        (JOBS + "what\n", MACHINES, "x.job: line 14: 'what' has no colon"),
        (JOBS.replace("W1;5;A", "W9;5;A"), MACHINES, "x.job: line 8: Oper: 'W9' is not one of W1"),
        (JOBS.replace("W1;5;A", "W1;5.5;A"), MACHINES, "x.job: line 8: Oper: '5.5' is not a whole number of 0 or more"),
        (JOBS.replace("W1;5;A", "W1"), MACHINES, "x.job: line 8: Oper: '' is not a whole number"),
        (JOBS.replace("  Weight:             2", "  Weight: -2"), MACHINES, "x.job: line 6: Weight: '-2' is not"),
        (JOBS.replace("  Oper:               W1;7;A\n", ""), MACHINES, "x.job: line 9: Job: 'J2' has no Oper"),
        (JOBS + "  Oper: W1;1;A\n", MACHINES, "x.job: line 9: Job: 'J2' has 2 operations on one work centre"),
        (JOBS, TWO, "x.job: line 2: Release: 3 is not 0: jobs of several operations have no release"),
    ],
)
def test_bad_files(tmp_path: Path, jobs: str, machines: str, words: str) -> None:
    """An error names file, line, field and value."""
    with pytest.raises(InstanceError, match=words):
        read_lekin(*files(tmp_path, jobs, machines))


def test_a_choice_for_due_dates(tmp_path: Path) -> None:
    """Due dates are dropped or strict, and nothing else."""
    with pytest.raises(InstanceError, match="due: 'soft' is not one of drop, deadline"):
        read_lekin(*files(tmp_path, JOBS, MACHINES), "soft")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"capacity": NodePool(1, 2)}, "capacity: a NodePool is no group of parallel machines"),
        ({"jobs": (MoldableJob("a", (2,), (3.0,)),)}, r"jobs\[0\]: holds other than one GPU"),
        (
            {"jobs": (MoldableJob("a", (1,), (3.0,), value=1.0),)},
            r"jobs\[0\]: holds other than one GPU, or may be left",
        ),
        ({"jobs": (MoldableJob("a", (1,), (3.5,)),)}, r"jobs\[0\]: 3.5 is not whole"),
    ],
)
def test_what_lekin_does_not_have(tmp_path: Path, change: dict[str, object], words: str) -> None:
    """Gangs, rejection, nodes and broken numbers are refused, and nothing is written."""
    problem = replace(ScheduleProblem((MoldableJob("a", (1,), (3.0,)),), Pool(2)), **change)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match=words):
        write_lekin(problem, tmp_path / "y.job", tmp_path / "y.mch")
    assert list(tmp_path.iterdir()) == []
