"""Links that gangs load for a part of the time: methods that know it are right, the others leave such batches alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.check import check_solver
from gangplan.solvers.method import suite
from gangplan.solvers.placement.enumeration import random_problem
from gangplan.solvers.placement.methods import METHODS
from gangplan.solvers.placement.prepare import PreparedBatch


def part_time(seed: int, variant: str = "") -> PlacementProblem:
    """Return a random problem in which gangs synchronise, and load links for a part of the time."""
    problem = random_problem(seed, variant)
    duty = np.random.default_rng(seed).choice([0.0, 0.3, 0.7, 1.0], 2)
    gradient = np.maximum(problem.speeds.gradient, 1.0)
    return replace(problem, speeds=replace(problem.speeds, duty=duty, gradient=gradient))


@pytest.mark.parametrize("method", ["cpsat", "local_search"])
def test_contract(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT proves such batches, and what local search finds is no better than the optimum."""
    tools = replace(suite("placement"), random_problem=part_time)
    monkeypatch.setattr("gangplan.solvers.check.suite", lambda name: tools)
    check_solver(METHODS[method], "placement", problems=15)


def test_methods_that_do_not_know() -> None:
    """Patterns and the MILP share links by the number of gangs, and are left out."""
    problem = gangs(8, nodes=3, seed=1)
    for duty in (1.0, 0.5):
        speeds = replace(problem.speeds, duty=np.full(len(problem.speeds.models), duty))
        batch = PreparedBatch(replace(problem, speeds=speeds))
        assert [METHODS[name].suits(batch) for name in ("patterns", "cpsat")] == [duty == 1, True]


def test_less_contention() -> None:
    """The less gangs load links, the less a plan costs; the reference, a job alone, stays."""
    problem = gangs(16, nodes=4, load=0.9, seed=3)
    plan = solve(problem, time_limit=20.0, workers=1, method="load_balance").plan
    cost = []
    for duty in (1.0, 0.5, 0.0):
        speeds = replace(problem.speeds, duty=np.full(len(problem.speeds.models), duty))
        result = solve(replace(problem, speeds=speeds), time_limit=0.1, workers=1, method="first_fit", initial=plan)
        cost.append(result.trace[0].objective)
    assert cost[0] > cost[1] > cost[2]
