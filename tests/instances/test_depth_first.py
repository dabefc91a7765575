"""Searches whose depth is the size of the problem."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from gangplan import InstanceError, verify_bound
from gangplan.instances.depth_first import walked
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.solvers.placement.gpu_assignment import pack


@pytest.fixture
def shallow() -> Iterator[None]:
    """Leave Python room for 80 calls more."""
    before, frame, depth = sys.getrecursionlimit(), sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        depth += 1
    sys.setrecursionlimit(depth + 80)
    yield
    sys.setrecursionlimit(before)


def gangs(count: int, nodes: int, gpus: int, each: float) -> PlacementProblem:
    """Return gangs of one task that differ in weight."""
    fleet = Fleet.regular(racks=1, nodes=nodes, gpus=gpus)
    speeds = SpeedModel(("m",), fleet.gpu_types, [[1.0]], [1e9], [0.5], [[0.0]], [[0.0]])
    jobs = tuple(GangJob(f"j{i}", "m", (1,), Demand(each), weight=1 + i * 1e-3) for i in range(count))
    return PlacementProblem(fleet, jobs, speeds)


def covers(problem: PlacementProblem, price: str, steps: int) -> dict[str, Any]:
    """Return a document whose threshold a plan is below."""
    prices = [price] * len(problem.jobs)
    return {"argument": "covers", "threshold": "100000000", "prices": prices, "steps": steps}


def test_order() -> None:
    """What a generator yields that is a generator is run before what follows it, to any depth."""

    def tree(depth: int) -> Iterator[Any]:
        yield depth
        if depth < 5000:
            yield tree(depth + 1)
            yield -depth

    found = list(walked(tree(0)))
    assert found == [*range(5001), *(-x for x in range(4999, -1, -1))]


@pytest.mark.parametrize(
    ("problem", "price", "steps", "words"),
    [(gangs(100, 100, 8, 8.0), "0", 10_000, "a plan may be below it"), (gangs(85, 1, 85, 1.0), "2", 300, "steps")],
    ids=["nodes", "tasks of a node"],
)
def test_checker(shallow: None, problem: PlacementProblem, price: str, steps: int, words: str) -> None:
    """The checker answers a document of more gangs than Python has calls, on as many nodes or on one."""
    with pytest.raises(InstanceError, match=words):
        verify_bound(problem, covers(problem, price, steps))


def test_packing(shallow: None) -> None:
    """More tasks share the GPUs of a node than Python has calls."""
    found = pack([(j, 0.3 if j % 2 else 0.6, 1) for j in range(100)], 50, lambda a, b: 0.0)
    assert found is not None and sum(sum(x.values()) for x in found) == 100


@pytest.mark.long
def test_five_thousand_gangs() -> None:
    """The checker answers a document of 5,000 gangs on as many nodes."""
    problem = gangs(5000, 5000, 8, 8.0)
    with pytest.raises(InstanceError):
        verify_bound(problem, covers(problem, "0", 1_000_000))
