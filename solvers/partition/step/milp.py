"""The step by MILP, through PuLP: HiGHS if it is installed, else CBC. For small problems, and as a second opinion."""

from __future__ import annotations

from functools import partial

import numpy as np
import pulp

from gangplan.instances import StepPlan

from ...pulp_solvers import APT, TOLERANCE, minimise_lp
from ...run import Run
from ..sizes import Covers
from .cpsat_ticks import ceiling_of
from .milp_model import MilpModel
from .model import Prepared
from .retime import retime

_ROOM = 1.001
"""The best plan known must not lie on the edge of what the tolerances allow."""


def milp(run: Run, p: Prepared) -> None:
    """Minimise the makespan by MILP and offer the plan found."""
    covers, known, unit = Covers(), -1, np.inf
    # tolerances are relative to the unit: solve again where the plan found is far below it, or breaks a limit
    while not run.stopped and (len(covers.found) > known or (run.objective or np.inf) < unit * APT):
        known = len(covers.found)
        unit = (run.objective if run.objective is not None else ceiling_of(p)) * _ROOM or 1.0
        with run.phase("milp model"):
            model = MilpModel(p, unit, covers, lambda: run.stopped)
            if run.bound is not None:
                model.z.lowBound = min(1.0, run.bound / unit) * (1 - 10 * TOLERANCE)
        if not run.stopped:
            with run.phase("milp"):
                minimise_lp(run, model.lp, model.unit, partial(_plan, run, p, model))


def _plan(run: Run, p: Prepared, model: MilpModel) -> StepPlan | None:
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
    plan = retime(p, np.array(where, dtype=np.int32)[p.group_of], start, sent)
    return plan if model.covers.accepts(run, plan, p.group_of, "milp") else None
