"""Plain models of replicated stages: cases by hand, and every field of a problem against the referee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Cluster, DeviceType, Level, StagesProblem, TreeTopology
from gangplan.instances.graph import with_backward
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.tiny import graph_of
from tests.seeds import some

NAMES = ["milp", "plain_cpsat", "plain_milp"]


def problem(members: tuple[int, ...] = (4,), memory: float | None = None, weights: float = 0.0) -> StagesProblem:
    """Return a, 1 s, before b, 3 s; each 1 byte; a sends 8 bytes over links of 2 bytes/s; b may have weights."""
    none = np.full(2, -1)
    forward = graph_of(
        ("gpu",), np.array([[1.0, 3.0]]), np.ones(2), np.array([8.0, 0.0]), (np.array([0]), np.array([1])),
        made=(none, none, np.zeros(2, dtype=bool)), weights=np.array([0.0, weights]),
    )  # fmt: skip
    graph = with_backward(forward, np.zeros((1, 2)), np.zeros(2)) if weights else forward
    levels = tuple(Level(f"level {i}", 2.0) for i in range(len(members)))
    topology = TreeTopology.regular(levels, members)
    cluster = Cluster((DeviceType("gpu", memory=memory),), np.zeros(topology.n_devices, dtype=np.int32), topology)
    return StagesProblem(graph, cluster)


CASES: dict[str, tuple[dict[str, Any], float | None]] = {
    # both on all four: 4 s of work over 4 devices, nothing moves
    "data parallel": ({}, 1.0),
    # they do not fit together, and what moves takes 8 / 2 over the replicas of either: two each are best
    "memory": ({"memory": 1.0}, 2.0),
    # two servers of two: each pipeline of a and b inside a server moves 4 s, so both servers together 2 s
    "inside": ({"members": (2, 2), "memory": 1.0}, 2.0),
    # a device has room for neither
    "none": ({"memory": 0.5}, None),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, name: str) -> None:
    """The optimum of the comment is found and proved, or that there is none."""
    arguments, best = CASES[case]
    result = solve(problem(**arguments), time_limit=60, method=name, workers=1)
    assert result.status == ("INFEASIBLE" if best is None else "OPTIMAL")
    assert result.objective == (None if best is None else pytest.approx(best, rel=1e-6))


@pytest.mark.parametrize("name", NAMES)
def test_synchronisation(name: str) -> None:
    """Replicas of b agree on 1 byte in 4 (m - 1) / m / 2 s; moves are free here.

    All on m devices take (4 + 2 (m - 1) / m) / m: 4, 2.5, 1.78, 1.375. a on one and b on three (3 + 4/3) / 3 = 1.44.
    """
    result = solve(replace(problem(weights=1.0), activations=False), time_limit=60, method=name, workers=1)
    assert (result.status, result.objective) == ("OPTIMAL", pytest.approx(1.375))


def test_the_page_says_nothing_else() -> None:
    """Without what the suite prepares, CP-SAT agrees with the referee on problems that differ from the contract's."""
    tools = suite("stages")
    for seed in some(range(300, 320), 2):
        tiny = tools.random_problem(seed, "")
        best, run = tools.optimum(tiny), Run(tiny, time_limit=60)
        tools.methods["plain_cpsat"].function(run, None)
        assert run.infeasible == (best is None), seed
        assert best is None or run.objective == pytest.approx(best, rel=1e-6), seed
