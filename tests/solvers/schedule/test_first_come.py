"""The first plan: there whatever the limit, and none that the verifier refuses."""

from __future__ import annotations

import pytest

from gangplan import solve
from gangplan.instances.generators.jobs import moldable
from gangplan.instances.verify import verify
from gangplan.solvers.schedule.first_come import first_come
from gangplan.solvers.schedule.methods import SUITE
from gangplan.solvers.schedule.prepare import prepare


@pytest.mark.parametrize("capacity", ["pool", "nodes", "ramp"])
@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct", "makespan", "blocked", "throughput"])
def test_a_plan_whatever_the_limit(capacity: str, goal: str) -> None:
    """With 20 ms for 300 jobs, less than many a method needs to begin, there is a verified plan and a bound."""
    problem = moldable(300, nodes=4, gpus=4, seed=3, capacity=capacity, goal=goal, fraction=2.0 * (goal == "blocked"))
    result = solve(problem, time_limit=0.02, workers=1)
    assert result.plan is not None and verify(problem, result.plan).ok


def test_first_come_passes_the_verifier() -> None:
    """On tiny problems where every constraint may bind, the first plan breaks none; where there is none it says so."""
    found = 0
    for seed in range(200):
        problem = SUITE.random_problem(seed, "")
        p = prepare(problem)
        made = first_come(p)
        if made is not None:
            assert verify(problem, p.plan(*made)).ok, seed
            found += 1
    assert found > 100
