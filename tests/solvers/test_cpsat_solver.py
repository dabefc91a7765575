"""CP-SAT as all methods run it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ortools.sat.python import cp_model

from gangplan.solvers.cpsat_solver import minimise, solver_for


@pytest.mark.parametrize(("seconds", "bounds"), [(0.0, set()), (10.0, {-4.0})])
def test_a_search_stopped_before_it_began_proves_nothing(seconds: float, bounds: set[float]) -> None:
    """The least of 1 - x is -4; CP-SAT calls its bound 0 when it had no time, which with the constant were 1."""
    model = cp_model.CpModel()
    model.minimize(-model.new_int_var(0, 5, "x"))
    raised: list[float] = []
    run = SimpleNamespace(
        raise_bound=lambda value, by: raised.append(value),
        prove_infeasible=lambda: None,
        offer=lambda *plan: None,
        stopped=False,
        stop_reason=None,
        plan=None,
    )
    minimise(run, solver_for(seconds, 1, 0), model, 1.0, lambda value: None, constant=1.0)  # type: ignore[arg-type]
    assert {x for x in raised if x > -1e6} == bounds
