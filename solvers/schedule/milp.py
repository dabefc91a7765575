"""The time-indexed MILP, through PuLP: a binary for each option, place and start in whole ticks."""

from __future__ import annotations

from collections import defaultdict
from math import comb
from typing import Any

import numpy as np
import pulp

from gangplan.instances.schedule import SchedulePlan

from ..pulp_solvers import Model, minimise_lp
from ..run import Run, watched
from .cpsat import seated
from .enumeration import Place, places
from .grain import down, tick_of
from .prepare import RAMP, Prepared

_BINARIES, _TERMS = 100_000, 2_000_000
"""Of a model: the starts there are, and those times the ticks and nodes that each is in."""


def suits(p: Prepared) -> bool:
    """Return whether times are whole ticks, and few enough."""
    tick, whole = tick_of(p)
    starts = [_places(p, o) * len(_ticks(p, o, tick)) for o in range(len(p.gpus))] if whole else []
    # a job is on as many nodes as its GPUs at most
    ticks = (down(q, tick) * min(g, p.nodes) for q, g in zip(p.seconds.tolist(), p.gpus.tolist(), strict=True))
    return whole and sum(starts) <= _BINARIES and sum(n * t for n, t in zip(starts, ticks, strict=False)) <= _TERMS


def _places(p: Prepared, o: int) -> int:
    """Return how many places option o has."""
    if p.kind == RAMP:
        return int((p.size == p.gpus[o]).sum())
    full, rest = divmod(int(p.gpus[o]), p.per)
    return comb(p.nodes, full) * (p.nodes - full if rest else 1)


def milp_time(run: Run, p: Prepared) -> None:
    """Minimise the goal and offer the schedule found."""
    with run.phase("milp model"):
        model = TimeIndexed(run, p)
    if not run.stopped:
        with run.phase("milp"):
            minimise_lp(run, model.lp, model.unit, model.plan)


class TimeIndexed:
    """x[o, place, s]: option o runs there from tick s on; out[j]: job j is left out.

    Costs are in a unit of which the objective is about 1. More than two of them is no better than two, and digits of
    1e9 would drown the others.
    """

    def __init__(self, run: Run, p: Prepared) -> None:
        self.p, self.run, self.lp, self.unit = p, run, Model("schedule", lambda: run.stopped), _unit(run, p)
        self._x: list[tuple[Any, int, Place, int]] = []
        self._held: dict[tuple[int, int], list[Any]] = defaultdict(list)
        # solvers differ in whether they count a constant in their bound: here it is a term
        self._costs: list[Any] = [p.constant / self.unit * pulp.LpVariable("one", 1, 1)]
        self._last = pulp.LpVariable("last", 0) if p.makespan else None
        for j in range(p.n):
            if run.stopped:
                return
            self._one_of_each(j)
        self._capacity()
        self.lp.setObjective(pulp.lpSum(self._costs if self._last is None else [*self._costs, self._last]))

    def _one_of_each(self, j: int) -> None:
        """Each job starts once, or is left out at its price; the last end is no earlier than its own."""
        p, tick = self.p, tick_of(self.p)[0]
        mine, ends = [], []
        for o in p.options(j):
            for place in places(p.problem, int(p.gpus[o])):
                for s in watched(_ticks(p, o, tick), lambda: self.run.stopped):
                    x = pulp.LpVariable(f"x{len(self._x)}", cat="Binary")
                    self._x.append((x, o, place, s))
                    mine.append(x)
                    end = s * tick + float(p.seconds[o])
                    ends.append(self._cost(end if p.makespan else float(p.slope[j]) * end) * x)
                    for t in range(s, s + down(float(p.seconds[o]), tick)):
                        for v, amount in place:
                            self._held[v, t].append(amount * x)
        if self._last is None:
            self._costs += ends
        else:
            self.lp += self._last >= pulp.lpSum(ends)
        if np.isfinite(p.price[j]):
            mine.append(pulp.LpVariable(f"out{j}", cat="Binary"))
            self._costs.append(self._cost(float(p.price[j])) * mine[-1])
        self.lp += pulp.lpSum(mine) == 1

    def _capacity(self) -> None:
        """In each tick no node holds more GPUs than it has."""
        for held in self._held.values():
            self.lp += pulp.lpSum(held) <= self.p.per

    def _cost(self, amount: float) -> float:
        return min(amount / self.unit, 2.0)

    def plan(self) -> SchedulePlan | None:
        """Return the plan of the solution."""
        p = self.p
        option, start = np.full(p.n, -1), np.zeros(p.n)
        held: list[list[tuple[int, int]]] = [[] for _ in range(p.n)]
        for x, o, place, s in self._x:
            if pulp.value(x) > 0.5:
                j = int(p.owner[o])
                option[j], start[j], held[j] = o, s, list(place)
        return seated(p, option, start, held)


def _ticks(p: Prepared, o: int, tick: float) -> range:
    """Return the ticks at which option o may start, to be over by its deadline and the horizon."""
    j = int(p.owner[o])
    last = min(float(p.due[o]), p.horizon) - float(p.seconds[o])
    return range(down(float(p.release[j]), tick), down(last, tick) + 1)


def _unit(run: Run, p: Prepared) -> float:
    if run.objective:
        return run.objective
    worst = float((p.slope * p.horizon).sum() + p.price[np.isfinite(p.price)].sum())
    return max(worst, p.horizon if p.makespan else 0.0) or 1.0
