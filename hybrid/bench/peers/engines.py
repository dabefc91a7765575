"""How the plain models are run: proofs to 1e-7, as gangplan's own have, and else the solvers' defaults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulp
from ortools.sat.python import cp_model

from gangplan.instances import verify
from gangplan.instances.intake import read_text
from gangplan.solvers import Run
from gangplan.solvers.cpsat_solver import solver_for
from gangplan.solvers.processes import interruptible

Solve = Callable[[Run, Any, float, Callable[[], Any]], None]
"""Minimises a programme of PuLP: the run, the programme, its unit in seconds, and what makes a plan of its values."""
_GAP = 1e-7
_LOWER = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)


def run_cpsat(run: Run, model: Any, scale: float, plan: Callable[[Any], Any], constant: float = 0.0) -> None:
    """Minimise with CP-SAT; `plan` makes one of a solution, the model's objective is scale (seconds - constant)."""

    class Watcher(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            _offer(run, plan(self), "plain-cpsat")

    solver = solver_for(run.remaining(), run.workers, run.seed)
    status = interruptible(lambda: solver.solve(model, Watcher()), solver.stop_search, lambda: run.stopped)
    if status == cp_model.INFEASIBLE:
        run.prove_infeasible()
    elif status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        run.raise_bound(solver.best_objective_bound / scale + constant, "plain-cpsat")


def by_highs(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
    """Minimise with HiGHS; see `Solve`."""
    if run.stopped:
        return
    limits = {"timeLimit": run.remaining(), "threads": run.workers, "random_seed": run.seed}
    lp.solve(pulp.HiGHS(msg=False, gapRel=_GAP, **limits))
    _conclude(run, lp, unit, plan, float(lp.solverModel.getInfo().mip_dual_bound), "plain-highs")


def by_cbc(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
    """Minimise with CBC, in a process of its own as PuLP has it; see `Solve`."""
    if run.stopped:
        return
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        options = [f"randomCbcSeed {run.seed}"]
        limits = {"timeLimit": run.remaining(), "threads": run.workers, "logPath": str(log), "options": options}
        solver = pulp.PULP_CBC_CMD(msg=False, gapRel=_GAP, **limits)
        solver.tmpDir = folder
        lp.solve(solver)
        found = _LOWER.search(read_text(log, empty=True))
    proved = lp.sol_status == pulp.LpSolutionOptimal
    bound = float(pulp.value(lp.objective) or 0.0) if proved else float(found[1]) if found else float("-inf")
    _conclude(run, lp, unit, plan, bound, "plain-cbc")


def _conclude(run: Run, lp: Any, unit: float, plan: Callable[[], Any], bound: float, by: str) -> None:
    if lp.status == pulp.LpStatusInfeasible and lp.sol_status == pulp.LpSolutionInfeasible:
        run.prove_infeasible()
        return
    if lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        _offer(run, plan(), by)
    run.raise_bound(bound * unit, by)


def _offer(run: Run, plan: Any, by: str) -> None:
    """Keep `plan` if it is one: what holds within a solver's tolerances need not hold."""
    if plan is not None and verify(run.problem, plan).ok:
        run.offer(plan, by)
    else:
        run.note(f"{by}: a plan found is feasible only within the solver's tolerances, so it is dropped")
