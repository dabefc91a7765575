"""Why a batch of gangs has no placement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.hybrid import MethodFailed
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, Running, SpeedModel
from gangplan.solvers.placement.methods import METHODS

FLEET = Fleet.regular(racks=1, nodes=3, gpus=4, cpu=16.0, memory=100.0)
SPEEDS = SpeedModel(
    models=("a", "b"),
    gpu_types=("A100",),
    compute=np.array([[1.0, np.inf]]),
    gradient=np.zeros(2),
    overlap=np.zeros(2),
    host=np.zeros((2, 2)),
    gpu=np.zeros((2, 2)),
)
SMALL = GangJob("small", "a", (2,))


def reasons(*jobs: GangJob, fleet: Fleet = FLEET, running: tuple[Running, ...] = ()) -> list[str]:
    """Return the conflict of a batch that has no placement."""
    result = solve(PlacementProblem(fleet, jobs, SPEEDS, running), time_limit=20, workers=1)
    assert result.status == "INFEASIBLE" and result.stop_reason in ("proved", "claimed")
    return list(result.conflict)


@pytest.mark.parametrize(
    ("job", "changes", "words"),
    [
        (GangJob("x", "a", (13,)), {}, ["GPUs: 3 nodes have 12, at most 4 each", "gang: job x runs whole, 13 workers"]),
        (
            GangJob("x", "a", (2,), Demand(1, cpu=20.0)),
            {},
            ["cores: 3 nodes have 48, at most 16 each", "gang: job x runs whole, 2 workers of 1 GPU, 20 cores"],
        ),
        (
            GangJob("x", "a", (2,), Demand(1, nic=30e9)),
            {},
            ["NICs: 3 nodes have 25 GB/s each; all jobs need 60 GB/s", "gang: job x runs whole, 2 workers"],
        ),
        (
            GangJob("x", "a", (4,), most_per_node=1),
            {},
            ["spread: job x has at most 1 of its 4 workers on a node", "gang: job x"],
        ),
        (GangJob("x", "b", (1,)), {}, ["GPU type: b does not run on A100", "gang: job x"]),
        (
            GangJob("x", "a", (5,), requires=("ssd",)),
            {"labels": ("ssd",), "labelled": [[True, False, False]]},
            ["GPUs: 3 nodes have 12", "selector: job x goes to nodes with ssd: 1 of 3, with 4 GPUs", "gang: job x"],
        ),
        (
            GangJob("x", "a", (9,)),
            {"usable": [True, True, False]},
            ["GPUs: 2 nodes have 8", "nodes: 1 of 3 are not usable", "gang: job x"],
        ),
    ],
)
def test_one_job(job: GangJob, changes: dict[str, Any], words: list[str]) -> None:
    """The job that cannot be placed is named, with what is missing, and jobs that fit are not."""
    found = reasons(SMALL, job, fleet=replace(FLEET, **changes))
    assert len(found) == len(words)
    for line, start in zip(found, words, strict=True):
        assert line.startswith(start)


def test_too_much_together() -> None:
    """Two gangs of seven on twelve GPUs contradict each other; the small one has no part in it."""
    found = reasons(SMALL, GangJob("x", "a", (7,)), GangJob("y", "a", (7,)))
    assert [line.split(",")[0] for line in found] == [
        "GPUs: 3 nodes have 12",
        "gang: job x runs whole",
        "gang: job y runs whole",
    ]


def test_beside_a_pinned_job() -> None:
    """A job that runs and stays leaves too little to another, which is said."""
    stay = Running("stay", ("node0", "node1"), (4, 4))
    x = GangJob("x", "a", (4,), apart=("stay",), most_per_node=3)
    found = reasons(SMALL, GangJob("stay", "a", (8,)), x, running=(stay,))
    assert found[:3] == [
        "pinned: job stay stays on node0, node1",
        "apart: jobs x and stay share no node",
        "spread: job x has at most 3 of its 4 workers on a node",
    ]
    assert len(found) == 4 and found[3].startswith("gang: job x runs whole, 4 workers")


def test_optional_jobs_are_left_out() -> None:
    """A job that may be left out is no reason for having no plan."""
    problem = PlacementProblem(FLEET, (SMALL, GangJob("x", "a", (13,), value=3.0)), SPEEDS)
    result = solve(problem, time_limit=20, workers=1)
    assert result.status == "OPTIMAL" and result.conflict == ()
    assert result.objective == pytest.approx(1.0 + 3.0)


def test_methods_that_do_not_model_the_problem_are_not_asked() -> None:
    """A conflict of NIC reservations, which patterns do not model, is found by the methods that do."""
    jobs = [GangJob(name, "a", (1,), Demand(1, nic=13e9)) for name in "xyzw"]
    found = reasons(*jobs)
    assert [words.split(":")[0] for words in found] == ["NICs", "gang", "gang", "gang", "gang"]


def test_a_method_that_fails_leaves_the_conflict_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that fails while a conflict is sought is left out, as in the portfolio."""

    def fails(run: Any, prepared: Any) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setitem(METHODS, "local_search", replace(METHODS["local_search"], function=fails))
    with pytest.warns(MethodFailed, match="no such luck"):
        assert len(reasons(GangJob("x", "a", (13,)))) == 2


def test_a_demand_that_no_cluster_could_meet() -> None:
    """Where even the relaxed problem would be too large to look at, the answer stands and the conflict has it in."""
    problem = gangs(jobs=2, racks=1, nodes=4, load=0.3, seed=0)
    first = replace(problem.jobs[0], worker=replace(problem.jobs[0].worker, gpu=9_000_000.0))
    result = solve(replace(problem, jobs=(first, *problem.jobs[1:])), time_limit=20)
    assert result.status == "INFEASIBLE" and any("job0" in words for words in result.conflict)
