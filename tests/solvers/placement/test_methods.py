"""`solve` reaches every method for placement."""

from __future__ import annotations

from gangplan import dump, load, methods, solve
from gangplan.instances import verify
from gangplan.instances.generators.gangs import gangs
from gangplan.solvers.placement.methods import BATCH_POLICIES


def test_solve() -> None:
    """A batch is solved by name or by default, with a bound, and the plan survives JSON."""
    problem = gangs(12, nodes=4, seed=1)
    result = solve(problem, time_limit=1.0, workers=1)
    assert result.status in ("FEASIBLE", "OPTIMAL") and result.plan is not None
    assert result.bound is not None and result.gap is not None and 0 <= result.gap < 0.3
    assert verify(problem, load(dump(result.plan))).objective == result.objective
    worse = solve(problem, time_limit=20.0, workers=1, method="load_balance")
    assert worse.stop_reason == "methods exhausted"
    assert result.objective is not None and worse.objective is not None and result.objective < worse.objective
    assert set(methods("placement")) >= {*BATCH_POLICIES, "local_search"}


def test_initial_plan_is_improved() -> None:
    """Local search starts from the plan it is given."""
    problem = gangs(12, nodes=4, seed=1)
    first = solve(problem, time_limit=20.0, workers=1, method="load_balance")
    assert first.plan is not None and first.objective is not None
    second = solve(problem, time_limit=1.0, workers=1, method="local_search", initial=first.plan)
    assert second.trace[0].by == "initial"
    assert second.trace[1].objective < second.trace[0].objective == first.objective
