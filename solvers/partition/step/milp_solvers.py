"""PuLP's solvers with a time limit set when they start and an ear for Ctrl-C."""

from __future__ import annotations

from typing import Any

import pulp

from ...interrupt import interruptible
from ...run import Run

TOLERANCE = 1e-8


def available_solvers() -> list[str]:
    """Return the MILP solvers PuLP can use here, best first."""
    present = pulp.listSolvers(onlyAvailable=True)
    return [name for name in ("HiGHS", "PULP_CBC_CMD") if name in present]


def solver(run: Run, name: str) -> Any:
    """Return the solver of that name for `run`."""
    return _highs(run) if name == "HiGHS" else _cbc(run)


def _cbc(run: Run) -> Any:
    # with one thread it now and then waits 10 s for itself
    threads = run.workers if run.workers > 1 else None
    return pulp.PULP_CBC_CMD(msg=False, timeLimit=run.remaining(), gapRel=0.0, threads=threads)


def _highs(run: Run) -> Any:
    class Interruptible(pulp.HiGHS):  # type: ignore[misc]  # PuLP is untyped
        def callSolver(self, lp: Any) -> None:  # noqa: N802, PuLP's name
            highs = lp.solverModel
            highs.setOptionValue("time_limit", run.remaining())
            # its default tolerance of 1e-6 on integers and rows shows up in the bound
            for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
                highs.setOptionValue(tolerance, TOLERANCE)
            highs.HandleUserInterrupt = True
            interruptible(highs.run, highs.cancelSolve, lambda: run.stopped)

    # HiGHS's own defaults stop at a gap of 1e-4 and call that optimal
    return Interruptible(msg=False, gapRel=0.0, gapAbs=1e-9, threads=run.workers, random_seed=run.seed)
