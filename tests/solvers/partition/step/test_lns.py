"""Neighbourhoods of a step: what they free."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import StepPlan, StepProblem
from gangplan.solvers.partition.step import lns
from gangplan.solvers.partition.step.lns import Neighbourhoods
from gangplan.solvers.partition.step.model import prepare

from .conftest import cluster, graph


@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize("neighbourhood", [lns.window, lns.subgraph, lns.critical])
def test_something_is_freed(neighbourhood: lns.Pick, contention: bool) -> None:
    """Neighbourhoods free some groups of any plan, also where transfers wait for links, which is on no path."""
    edges = [(0, i) for i in range(1, 7)] + [(i, 7) for i in range(1, 7)]
    problem = StepProblem(graph([1.0] * 8, edges, output=0.3), cluster(4), contention=contention)
    plan = solve(problem, time_limit=20, method="heft", workers=1).plan
    assert isinstance(plan, StepPlan)
    prepared = prepare(problem)
    around = Neighbourhoods(prepared, plan, 1.0)
    for seed in range(20):
        free = neighbourhood(around, 4, np.random.default_rng(seed))
        assert free and free <= set(range(prepared.n_groups))
