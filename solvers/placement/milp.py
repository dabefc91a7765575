"""Placement as a mixed-integer linear programme, through PuLP: HiGHS if it is installed, else CBC."""

from __future__ import annotations

from bisect import insort
from math import isfinite

from gangplan.instances import verify
from gangplan.instances.placement import PlacementPlan

from ..pulp_solvers import ABOVE_ONE, minimise_lp
from ..run import Run
from .best_fit import best_fit
from .build import build
from .grants import as_plan
from .least_interference import least_interference
from .milp_cost import Cost, Scale, highest_cost, highest_slowdown
from .milp_tasks import Programme, Tasks
from .prepare import Batch
from .topology import topology

_PASSES = 3
"""With nothing learned between them."""
_APART = 1e-7
"""Slowdowns nearer to one another than this, relatively, are one."""


def milp(run: Run, batch: Batch) -> None:
    """Minimise the goal by MILP: offers the plans found, raises the bound.

    A loss of throughput is concave in the slowdown. It is modelled from below, exact at some slowdowns; those of the
    plan found are added to them and the model solved again, until the plan costs what the model says.
    """
    if run.plan is None:
        build(run, batch, (topology, best_fit, least_interference), "milp")
    slowdown = batch.problem.goal == "slowdown"
    marks = [[1.0, highest_slowdown(batch, j)] for j in range(len(batch.jobs))]
    if run.plan is not None:
        _mark(run, run.plan, marks)
    # tolerances are relative to the unit: solve again where the plan found is far below it or the bound not quite there
    tries = 0
    while tries < _PASSES and not run.stopped:
        with run.phase("milp model"):
            model = _Model(run, batch, marks)
        if run.stopped:
            return
        with run.phase("milp"):
            minimise_lp(run, model.lp, model.unit, model.plan)
        found = model.found
        tries = 0 if found is not None and not slowdown and _mark(run, found, marks) else tries + 1


def _mark(run: Run, plan: PlacementPlan, marks: list[list[float]]) -> bool:
    """Add the slowdowns of `plan` to the marks; return whether any is new."""
    rates = verify(run.problem, plan).rates
    before = sum(map(len, marks))
    for j, at in enumerate(marks):
        slowdown = float(rates.slowdown[j])
        if 1 < slowdown < at[-1] and all(abs(slowdown - x) > _APART * x for x in at):
            insort(at, slowdown)
    return sum(map(len, marks)) > before


class _Model:
    """The MILP; constraints and costs are in the modules beside this one."""

    def __init__(self, run: Run, batch: Batch, marks: list[list[float]]) -> None:
        self.batch = batch
        self.found: PlacementPlan | None = None
        self.unit: float = run.objective or highest_cost(batch) or 1.0
        programme = Programme()
        self.lp = programme.lp
        self.tasks = Tasks(batch, programme)
        cost = Cost(programme, self.tasks, Scale(self.unit, run.objective is not None, marks))
        goal = programme.amount(ABOVE_ONE)
        if run.bound is not None and isfinite(run.bound):
            goal.lowBound = run.bound / self.unit
        self.lp += goal >= cost.total
        self.lp += goal

    def plan(self) -> PlacementPlan | None:
        """Return the plan of the solution, `None` if it holds only within the solver's tolerances."""
        found = as_plan(self.batch, self.tasks.rows(), self.tasks.packing)
        if verify(self.batch.problem, found).ok:
            self.found = found
        return self.found
