"""What must hold on every problem, whatever its optimum."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import methods, solve
from gangplan.instances import LatencyProblem, with_objective
from gangplan.instances.generators import generate
from gangplan.solvers import Result
from gangplan.solvers.partition.latency.methods import METHODS
from gangplan.solvers.partition.tiny import random_latency as random_problem
from tests.seeds import examples, some

SEEDS = st.integers(0, 2**32)


def solved(problem: LatencyProblem, method: str = "auto") -> Result:
    """Solve to the end with one worker."""
    return solve(problem, time_limit=60, method=method, workers=1)


def value(problem: LatencyProblem) -> float:
    """Return the optimum, infinite if there is no plan."""
    result = solved(problem)
    assert result.status in ("OPTIMAL", "INFEASIBLE")
    return float("inf") if result.objective is None else result.objective


@settings(max_examples=examples(15))
@given(SEEDS)
def test_exact_is_no_worse_and_no_bound_is_better(seed: int) -> None:
    """No heuristic beats an exact method, and no method's bound any method's plan."""
    problem = random_problem(seed, ops=9)
    results = {m: solved(problem, m) for m in methods("latency")}
    found = {m: r.objective for m, r in results.items() if r.objective is not None}
    least = min(found.values(), default=None)
    for name, result in results.items():
        assert result.bound is None or least is None or result.bound <= least * (1 + 1e-6), name
        if METHODS[name].exact:
            assert result.objective == (None if least is None else pytest.approx(least, rel=1e-6)), name


def test_local_search_improves_on_greedy() -> None:
    """Among problems of a dozen ops there are some where it finds better plans, and none where it finds worse ones."""
    better = 0
    for seed in (12, *some(range(12), 4)):
        problem = random_problem(seed, ops=14)
        values = [solve(problem, time_limit=30, method=m, workers=1).objective for m in ("greedy", "local_search")]
        if values[0] is not None and values[1] is not None:
            assert values[1] <= values[0]
            better += values[1] < values[0] * (1 - 1e-3)
    assert better


def test_infeasible_says_why() -> None:
    """A problem without a plan ends with the requirements that contradict one another."""
    seen = 0
    for seed in (1, 3, *some(range(25), 4)):
        result = solved(random_problem(seed))
        assert (result.status == "INFEASIBLE") == bool(result.conflict)
        seen += result.status == "INFEASIBLE"
    assert seen >= 2


def test_time_limit_covers_everything(spent: Callable[[], float]) -> None:
    """On 2,000 ops a limit of a second and a half is kept, with a plan and a bound."""
    problem = with_objective(generate("layered", ops=2000, layers=200, training=False, devices=8), "latency")
    result = solve(problem, time_limit=1.5, workers=2)
    assert spent() < 2 * 6.5  # of two workers
    assert result.objective is not None and result.bound is not None
