"""The step by MILP, through PuLP: HiGHS if it is installed, else CBC. For small problems, and as a second opinion."""

from __future__ import annotations

import numpy as np
import pulp

from gangplan.instances import StepPlan, verify

from ...pulp_solvers import TOLERANCE, available_solvers, pulp_solver
from ...run import Run
from .cpsat_ticks import ceiling_of
from .milp_model import MilpModel
from .model import Prepared
from .retime import retime

_ROUNDING = 1e-6
"""What solvers may be wrong by, in units."""
_ROOM = 1.001
"""The best plan known must not lie on the edge of what the tolerances allow."""
_APT = 0.5


def milp(run: Run, p: Prepared, name: str | None = None) -> None:
    """Minimise the makespan by MILP and offer the plan found.

    Args:
        run, p: as for every method.
        name: ``HiGHS`` or ``PULP_CBC_CMD``; by default the first that is available.
    """
    unit = None
    # tolerances are relative to the unit: solve again where the plan found is far below it
    while not run.stopped and (unit is None or (run.objective is not None and run.objective < unit * _APT)):
        unit = (run.objective if run.objective is not None else ceiling_of(p)) * _ROOM or 1.0
        with run.phase("milp model"):
            model = MilpModel(p, unit, lambda: run.stopped)
            if run.bound is not None:
                model.z.lowBound = min(1.0, run.bound / unit) * (1 - 10 * TOLERANCE)
        if not run.stopped:
            with run.phase("milp"):
                _solve(run, p, model, name or available_solvers()[0])


def _solve(run: Run, p: Prepared, model: MilpModel, name: str) -> None:
    """Solve, offer the plan and record the bound; PuLP's status alone is not trusted."""
    lp = model.lp
    lp.solve(pulp_solver(run, name))
    if lp.status == pulp.LpStatusInfeasible:
        # HiGHS has proved it only if both say so; CBC says "no solution found" both then and out of time,
        # so it is believed only where its clock was far from running out
        proved = lp.sol_status == pulp.LpSolutionInfeasible or (name != "HiGHS" and run.remaining() > 1)
        if proved and run.plan is None:
            run.prove_infeasible()
        return
    if lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        plan = _plan(p, model)
        if plan is not None and verify(run.problem, plan).ok:
            run.offer(plan, "milp")
        else:
            run.note("milp: the plan found is feasible only within the solver's tolerances, so it is dropped")
    apt = run.objective is not None and run.objective >= model.unit * _APT
    slack = 0.0 if apt else _ROUNDING
    if name == "HiGHS":
        run.raise_bound((float(lp.solverModel.getInfo().mip_dual_bound) - slack) * model.unit, "milp")
    elif lp.sol_status == pulp.LpSolutionOptimal:
        run.raise_bound((float(pulp.value(model.z)) - slack) * model.unit, "milp")


def _plan(p: Prepared, model: MilpModel) -> StepPlan | None:
    """Return the plan of the solution, its times exact; `None` if rounding leaves a group without a device."""
    where = []
    for row in model.x:
        chosen = [d for d, x in row.items() if pulp.value(x) > 0.5]
        if len(chosen) != 1:
            return None
        where += chosen
    # what differs by tolerances starts together; `retime` then sees what has to go first
    start = np.round([pulp.value(s) for s in model.start], 6)
    sent = {pair: float(np.round(pulp.value(at), 6)) for pair, at in model.sent.items()}
    return retime(p, np.array(where, dtype=np.int32)[p.group_of], start, sent)
