"""How the plain models are run: the same options for each, the same as the package's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulp
from ortools.sat.python import cp_model

from gangplan.instances import Plan, verify
from gangplan.solvers import Run
from gangplan.solvers.processes import interruptible
from gangplan.solvers.pulp_solvers import highs


def run_cpsat(run: Run, model: Any, scale: float, plan: Callable[[Any], Plan]) -> None:
    """Minimise with CP-SAT; `plan` makes one of the values of a solution, `scale` is integers a second."""

    class Watcher(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            _offer(run, plan(self), "plain_cpsat")

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = run.remaining()
    solver.parameters.num_workers = run.workers
    solver.parameters.random_seed = run.seed
    solver.parameters.catch_sigint_signal = False
    solver.parameters.presolve_inclusion_work_limit = 0  # wrong optima otherwise, see the package's own cpsat.py
    status = interruptible(lambda: solver.solve(model, Watcher()), solver.stop_search, lambda: run.stopped)
    if status == cp_model.INFEASIBLE:
        run.prove_infeasible()
    elif status != cp_model.MODEL_INVALID:
        run.raise_bound(solver.best_objective_bound / scale, "plain_cpsat")


def run_milp(run: Run, lp: Any, unit: float, plan: Callable[[], Plan]) -> None:
    """Minimise with HiGHS through PuLP; `plan` makes one of the variables' values, `unit` is in seconds."""
    if run.stopped:
        return
    lp.solve(highs(run))
    if lp.status == pulp.LpStatusInfeasible and lp.sol_status == pulp.LpSolutionInfeasible:
        run.prove_infeasible()
        return
    if lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        _offer(run, plan(), "plain_milp")
    run.raise_bound(float(lp.solverModel.getInfo().mip_dual_bound) * unit, "plain_milp")


def _offer(run: Run, plan: Plan, by: str) -> None:
    """Keep `plan` if it is one: what holds within a solver's tolerances need not hold."""
    if verify(run.problem, plan).ok:
        run.offer(plan, by)
    else:
        run.note(f"{by}: a plan found is feasible only within the solver's tolerances, so it is dropped")
