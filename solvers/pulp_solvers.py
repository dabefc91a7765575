"""PuLP's solvers with a time limit set when they start and an ear for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulp

from gangplan.instances import verify

from .processes import can_fork, forked, interruptible
from .run import Run

TOLERANCE = 1e-7
"""On rows and whole numbers. With 1e-8 HiGHS 1.14 now and then cuts off optima; 1e-6, its default, shows in bounds."""
ABOVE_ONE = 1.001
"""The upper bound of times that need not exceed 1: with 1 itself CBC takes an objective of them for whole numbers
("Cutoff increment increased to 0.9999") and ends at wrong optima, and HiGHS calls infeasible what lies on the edge."""

APT = 0.5
"""Tolerances are relative to the unit: if the optimum is below so much of it, solve again in a smaller one."""
_ROWS = 32
"""Rows between two looks at the clock."""
_ROUNDING = 1e-6
"""What solvers may be wrong by in a unit that is too large."""


def available_solvers() -> list[str]:
    """Return the MILP solvers PuLP can use here, best first."""
    present = pulp.listSolvers(onlyAvailable=True)
    return [name for name in ("HiGHS", "PULP_CBC_CMD") if name in present]


def pulp_solver(run: Run, name: str) -> Any:
    """Return PuLP's solver of that name for what is left of `run`.

    Args:
        run: gives time, threads and seed.
        name: one of `available_solvers`.
    """
    return _highs(run) if name == "HiGHS" else _cbc(run)


def minimise_lp(run: Run, lp: Any, name: str, unit: float, plan: Callable[[], Any]) -> None:
    """Solve `lp`, offer the plan and record the bound; PuLP's status alone is not trusted.

    Args:
        run: the solve.
        lp: its objective is in `unit` seconds, at most 1 or so.
        name: one of `available_solvers`.
        unit: seconds.
        plan: makes a plan of the variables' values, `None` if they are none when rounded.
    """
    bound = _solve(run, lp, name)
    if lp.status == pulp.LpStatusInfeasible:
        # HiGHS has proved it only if both say so; CBC says "no solution found" both then and out of time,
        # so it is believed only where its clock was far from running out
        proved = lp.sol_status == pulp.LpSolutionInfeasible or (name != "HiGHS" and run.remaining() > 1)
        if proved and run.plan is None:
            run.prove_infeasible()
        return
    if lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        found = plan()
        if found is not None and verify(run.problem, found).ok:
            run.offer(found, "milp")
        else:
            run.note("milp: the plan found is feasible only within the solver's tolerances, so it is dropped")
    apt = run.objective is not None and run.objective >= unit * APT
    slack = TOLERANCE if apt else _ROUNDING
    if name == "HiGHS":
        run.raise_bound((bound - slack) * unit, "milp")
    elif lp.sol_status == pulp.LpSolutionOptimal:
        run.raise_bound((float(pulp.value(lp.objective)) - slack) * unit, "milp")


def _solve(run: Run, lp: Any, name: str) -> float:
    """Solve `lp` and return HiGHS's bound, minus infinity if there is none; what is stopped has no status."""

    def work() -> tuple[float, int, int, list[float | None]]:
        lp.solve(pulp_solver(run, name))
        bound = float(lp.solverModel.getInfo().mip_dual_bound) if name == "HiGHS" else float("-inf")
        return bound, lp.status, lp.sol_status, [x.varValue for x in lp.variables()]

    if name != "HiGHS" or not can_fork():
        return work()[0]
    # in the first relaxation HiGHS hears nothing: neither the clock nor us
    found = forked(work, lambda: run.stopped)
    if found is None:
        lp.status, lp.sol_status = pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        return float("-inf")
    bound, lp.status, lp.sol_status, values = found
    for x, value in zip(lp.variables(), values, strict=True):
        x.varValue = value
    return bound


class Model(pulp.LpProblem):  # type: ignore[misc]  # PuLP is untyped
    """A problem to minimise whose rows look at the clock as they come in.

    Raises:
        TimeoutError: in place of a row, once the run has stopped.
    """

    def __init__(self, name: str, stopped: Callable[[], bool]) -> None:
        super().__init__(name, pulp.LpMinimize)
        self._stopped, self._rows = stopped, 0

    def addConstraint(self, *args: Any, **options: Any) -> Any:  # noqa: N802, PuLP's name
        """Add a row, now and then after a look at the clock."""
        self._rows += 1
        if not self._rows % _ROWS and self._stopped():
            raise TimeoutError
        return super().addConstraint(*args, **options)


def _cbc(run: Run) -> Any:
    # with one thread it now and then waits 10 s for itself
    threads = run.workers if run.workers > 1 else None
    return pulp.PULP_CBC_CMD(msg=False, timeLimit=run.remaining(), gapRel=0.0, threads=threads)


def _highs(run: Run) -> Any:
    class Interruptible(pulp.HiGHS):  # type: ignore[misc]  # PuLP is untyped
        def callSolver(self, lp: Any) -> None:  # noqa: N802, PuLP's name
            highs = lp.solverModel
            highs.setOptionValue("time_limit", run.remaining())
            for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
                highs.setOptionValue(tolerance, TOLERANCE)
            # 1.14's now and then cuts off the optimum, says infeasible, or breaks a row by 1, in two columns already
            highs.setOptionValue("presolve", "off")
            highs.HandleUserInterrupt = True
            interruptible(highs.run, highs.cancelSolve, lambda: run.stopped)

    # HiGHS's own defaults stop at a gap of 1e-4 and call that optimal
    return Interruptible(msg=False, gapRel=0.0, gapAbs=1e-9, threads=run.workers, random_seed=run.seed)
