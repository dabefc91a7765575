"""The time-indexed MILP, through PuLP: a binary for each option, place and start in whole ticks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pulp

from gangplan.instances.schedule import SchedulePlan

from ..pulp_solvers import available_solvers, minimise_lp
from ..run import Run
from .grain import down, tick_of
from .places import places
from .prepare import Prepared
from .seated import Place, seated
from .sizes import horizon, ticks_of


def milp_time(run: Run, p: Prepared, name: str | None = None) -> None:
    """Minimise the goal by the time-indexed MILP and offer the schedule found.

    Args:
        run, p: as for every method.
        name: ``HiGHS`` or ``PULP_CBC_CMD``; by default the first that is available.
    """
    with run.phase("milp model"):
        model = _Model(run, p)
    if not run.stopped:
        with run.phase("milp"):
            minimise_lp(run, model.lp, name or available_solvers()[0], model.unit, model.plan)


class _Model:
    """x[o, place, s]: option o runs there from tick s on; out[j]: job j is left out."""

    def __init__(self, run: Run, p: Prepared) -> None:
        self.p = p
        self.lp = pulp.LpProblem("schedule", pulp.LpMinimize)
        self.unit = unit_of(run, p)
        tick, _ = tick_of(p)
        end_of_all = horizon(p)
        self.x: list[tuple[Any, int, Place, int]] = []
        rows: dict[tuple[int, int], list[Any]] = defaultdict(list)
        terms: list[Any] = [constant(p, self.unit)]
        last = pulp.LpVariable("last", 0) if p.makespan else None
        for j in range(p.n):
            if run.stopped:
                return
            mine, ends = [], []
            for o in p.options(j):
                for place in places(p, o):
                    for s in ticks_of(p, o, tick, end_of_all):
                        x = pulp.LpVariable(f"x{len(self.x)}", cat="Binary")
                        self.x.append((x, o, place, s))
                        mine.append(x)
                        end = s * tick + float(p.seconds[o])
                        ends.append(cost(float(p.slope[j]) * end if last is None else end, self.unit) * x)
                        for t in range(s, s + down(float(p.seconds[o]), tick)):
                            for v, amount in place:
                                rows[v, t].append(amount * x)
            if last is None:
                terms += ends
            else:
                self.lp += last >= pulp.lpSum(ends)
            if np.isfinite(p.price[j]):
                out = pulp.LpVariable(f"out{j}", cat="Binary")
                terms.append(cost(float(p.price[j]), self.unit) * out)
                mine.append(out)
            self.lp += pulp.lpSum(mine) == 1
        self.lp.setObjective(pulp.lpSum([*terms, *([] if last is None else [last])]))
        for held in rows.values():
            self.lp += pulp.lpSum(held) <= p.cluster.gpus

    def plan(self) -> SchedulePlan | None:
        """Return the plan of the solution."""
        p = self.p
        option, start = np.full(p.n, -1), np.zeros(p.n)
        held: list[Place] = [[] for _ in range(p.n)]
        for x, o, place, s in self.x:
            if pulp.value(x) > 0.5:
                j = int(p.owner[o])
                option[j], start[j], held[j] = o, s, place
        return seated(p, option, start, held)


def unit_of(run: Run, p: Prepared) -> float:
    """Return what an objective of about 1 stands for."""
    if run.objective:
        return run.objective
    worst = float((p.slope * horizon(p)).sum() + p.price[np.isfinite(p.price)].sum())
    return max(worst, horizon(p) if p.makespan else 0.0) or 1.0


def cost(amount: float, unit: float) -> float:
    """Return a cost in the unit. More than two of them is no better than two, and digits of 1e9 drown the others."""
    return min(amount / unit, 2.0)


def constant(p: Prepared, unit: float) -> Any:
    """Return the constant of the goal as a term; solvers differ in whether they count one in their bound."""
    return p.constant / unit * pulp.LpVariable("one", 1, 1)
