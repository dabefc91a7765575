"""HiGHS by way of PuLP, with a time limit set when it starts and an ear for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import pulp

from gangplan.instances import verify

from . import highs as _highs  # noqa: F401  # silent from the start
from .processes import can_fork, forked, interruptible
from .run import Run

TOLERANCE = 1e-7
"""On rows and whole numbers: with 1e-8 HiGHS 1.14 cuts off more optima; 1e-6, its default, shows in bounds."""
APT = 0.5
"""Tolerances are relative to the unit: if the optimum is below so much of it, solve again in a smaller one."""
_ROWS = 32
"""Rows between two looks at the clock."""
_ROUNDING = 1e-5
"""What solvers may be wrong by in a unit that is too large: HiGHS 1.16 was by 2e-6 on latency 1724 of `nasty`."""


def highs(run: Run, presolve: bool = False) -> Any:
    """Return PuLP's HiGHS for what is left of `run`: its time, threads and seed."""

    class Interruptible(pulp.HiGHS):  # type: ignore[misc]  # PuLP is untyped
        def callSolver(self, lp: Any) -> None:  # noqa: N802, PuLP's name
            solver = lp.solverModel
            solver.setOptionValue("time_limit", run.remaining())
            for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
                solver.setOptionValue(tolerance, TOLERANCE)
            solver.setOptionValue("presolve", "on" if presolve else "off")
            solver.HandleUserInterrupt = True
            interruptible(solver.run, solver.cancelSolve, lambda: run.stopped)

    # HiGHS's own defaults stop at a gap of 1e-4 and call that optimal
    return Interruptible(msg=False, gapRel=0.0, gapAbs=1e-9, threads=run.workers, random_seed=run.seed)


def minimise_lp(run: Run, lp: Any, unit: float, plan: Callable[[], Any], by: str = "milp") -> None:
    """Solve `lp` with HiGHS, offer the plan and record the bound.

    Presolve of HiGHS 1.16 calls throughput 3327 of `nasty` infeasible, which it is not: it only confirms.

    Args:
        lp: its objective is in `unit` seconds, at most 1 or so.
        plan: makes a plan of the variables' values, `None` if they are none when rounded.
    """
    bound = _solve(run, lp)
    if lp.status == pulp.LpStatusInfeasible:
        bound = _solve(run, lp, presolve=True)
    if not conclude(run, lp, plan, by):
        return
    apt = run.objective is not None and run.objective >= unit * APT
    if isfinite(bound):
        run.raise_bound((bound - (TOLERANCE if apt else _ROUNDING)) * unit, by)


def conclude(run: Run, lp: Any, plan: Callable[[], Any], by: str) -> bool:
    """Offer the plan that a solver ended with, or prove that there is none; return whether its bound counts."""
    if lp.status == pulp.LpStatusInfeasible:
        if lp.sol_status == pulp.LpSolutionInfeasible and run.plan is None:  # PuLP has it so only if both say so
            run.prove_infeasible(by)
        return False
    if lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        made = plan()
        if made is not None and verify(run.problem, made).ok:
            run.offer(made, by)
        else:
            run.note(f"{by}: the plan found is feasible only within the solver's tolerances, so it is dropped")
    return True


def _solve(run: Run, lp: Any, *, presolve: bool = False) -> float:
    """Solve `lp` and return the bound, minus infinity if there is none; what is stopped has no status."""

    def work() -> tuple[float, int, int, dict[str, float | None]]:
        lp.solve(highs(run, presolve))
        bound = float(lp.solverModel.getInfo().mip_dual_bound)
        return bound, lp.status, lp.sol_status, {x.name: x.varValue for x in lp.variables()}

    if not can_fork():
        return work()[0]
    # in the first relaxation HiGHS hears nothing: neither the clock nor us
    found = forked(work, lambda: run.stopped)
    if found is None:
        lp.status, lp.sol_status = pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        return float("-inf")
    bound, lp.status, lp.sol_status, values = found
    for x in lp.variables():  # PuLP adds one of its own to an objective without any
        x.varValue = values[x.name]
    return bound


class Model(pulp.LpProblem):  # type: ignore[misc]  # PuLP is untyped
    """A problem to minimise whose rows look at the clock as they come in: `TimeoutError` once the run has stopped.

    Attributes:
        rows: so far.
        names: what a variable is, such as ``x_3_1``, where its own name says nothing.
    """

    def __init__(self, name: str, stopped: Callable[[], bool]) -> None:
        super().__init__(name, pulp.LpMinimize)
        self._stopped, self.rows, self.names = stopped, list[Any](), dict[str, str]()

    def addConstraint(self, *args: Any, **options: Any) -> Any:  # noqa: N802, PuLP's name
        """Add a row, now and then after a look at the clock."""
        self.rows.append(args[0])
        if not len(self.rows) % _ROWS and self._stopped():
            raise TimeoutError
        return super().addConstraint(*args, **options)
