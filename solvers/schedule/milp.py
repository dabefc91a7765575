"""Two MILPs, through PuLP: time-indexed, a binary for each option, place and start in whole ticks; and event-based.

The second chooses which jobs run after each event (Kone, Artigues, Lopez and Mongeau 2011, OOE). Events are starts, as
many as jobs, in order; times are continuous, so any durations will do.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pulp

from gangplan.instances.schedule import SchedulePlan

from ..pulp_solvers import minimise_lp
from ..run import Run
from .grain import down, tick_of, ticks_of
from .places import Place, places, seated
from .prepare import Prepared


def milp_time(run: Run, p: Prepared) -> None:
    """Minimise the goal by the time-indexed MILP and offer the schedule found."""
    _minimise(run, p, _ByTime)


def milp_events(run: Run, p: Prepared) -> None:
    """Minimise the goal by the event-based MILP and offer the schedule found."""
    _minimise(run, p, _ByEvents)


def _minimise(run: Run, p: Prepared, make: type[_ByTime | _ByEvents]) -> None:
    with run.phase("milp model"):
        model = make(run, p)
    if not run.stopped:
        with run.phase("milp"):
            minimise_lp(run, model.lp, model.unit, model.plan)


class _ByTime:
    """x[o, place, s]: option o runs there from tick s on; out[j]: job j is left out."""

    def __init__(self, run: Run, p: Prepared) -> None:
        self.p = p
        self.lp = pulp.LpProblem("schedule", pulp.LpMinimize)
        self.unit = unit_of(run, p)
        tick, _ = tick_of(p)
        end_of_all = p.horizon
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


class _ByEvents:
    """y[c]: choice c of an option and a place is made; z[c, e]: it runs after event e; t[e]: when that is."""

    def __init__(self, run: Run, p: Prepared) -> None:
        self.p, self.lp = p, pulp.LpProblem("schedule", pulp.LpMinimize)
        self.unit = unit_of(run, p)
        self.choices = [(o, place) for o in range(len(p.gpus)) for place in places(p, o)]
        self.long = p.horizon or 1.0
        self.t = [pulp.LpVariable(f"t{e}", 0, 1) for e in range(p.n)]
        self.y = [pulp.LpVariable(f"y{c}", cat="Binary") for c in range(len(self.choices))]
        self.z = [[pulp.LpVariable(f"z{c}_{e}", cat="Binary") for e in self.t] for c in range(len(self.choices))]
        self.out: dict[int, Any] = {}
        for before, after in zip(self.t, self.t[1:], strict=False):
            self.lp += before <= after
        for build in (self.capacity, self.runs, self.goal):
            if run.stopped:
                return
            build()

    def capacity(self) -> None:
        """After each event no node holds more than it has; a job of 0 s holds nothing."""
        for e in range(len(self.t)):
            held: dict[int, list[Any]] = {}
            for c, (o, place) in enumerate(self.choices):
                for v, amount in place if self.p.seconds[o] > 0 else []:
                    held.setdefault(v, []).append(amount * self.z[c][e])
            for terms in held.values():
                self.lp += pulp.lpSum(terms) <= self.p.cluster.gpus

    def runs(self) -> None:
        """A choice that is made runs from one event on without a break, for its time at least, after its release."""
        p, n = self.p, len(self.t)
        for c, (o, _) in enumerate(self.choices):
            z, y = self.z[c], self.y[c]
            seconds, release = float(p.seconds[o]) / self.long, float(p.release[p.owner[o]]) / self.long
            self.lp += pulp.lpSum(z) >= y
            starts = [z[e] - (z[e - 1] if e else 0) for e in range(n)]
            for e in range(n):
                self.lp += z[e] <= y
                self.lp += self.t[e] >= release * z[e]
                if e:
                    self.lp += pulp.lpSum(z[:e]) <= e * (1 - starts[e])
                    self.lp += pulp.lpSum(z[e:]) <= (n - e) * (1 + starts[e])
                for f in range(e + 1, n):
                    # started at e and over at f: f is not before its end
                    self.lp += self.t[f] >= self.t[e] + (starts[e] - starts[f] - 1) * seconds

    def goal(self) -> None:
        """Each job makes a choice or is left out; its end is no earlier than its start and time."""
        p, terms = self.p, [constant(self.p, self.unit)]
        last = pulp.LpVariable("last", 0, 1) if p.makespan else None
        for j in range(p.n):
            mine = [c for c, (o, _) in enumerate(self.choices) if p.owner[o] == j]
            made = [self.y[c] for c in mine]
            if np.isfinite(p.price[j]):
                self.out[j] = pulp.LpVariable(f"out{j}", cat="Binary")
                terms.append(cost(float(p.price[j]), self.unit) * self.out[j])
                made.append(self.out[j])
            self.lp += pulp.lpSum(made) == 1
            due = min(float(p.deadline[j]), self.long) / self.long
            end = pulp.LpVariable(f"end{j}", 0, due)
            for c in mine:
                seconds = float(p.seconds[self.choices[c][0]]) / self.long
                for e, z in enumerate(self.z[c]):
                    start = z - (self.z[c][e - 1] if e else 0)
                    self.lp += end >= self.t[e] + seconds * start - (1 - start)
            if last is not None:
                self.lp += last >= end
            terms.append(float(p.slope[j]) * self.long / self.unit * end)
        if last is not None:
            terms.append(self.long / self.unit * last)
        self.lp.setObjective(pulp.lpSum(terms))

    def plan(self) -> SchedulePlan | None:
        """Return the plan of the solution: jobs in the order of their events."""
        p = self.p
        option, start = np.full(p.n, -1), np.zeros(p.n)
        held: list[Place] = [[] for _ in range(p.n)]
        for c, (o, place) in enumerate(self.choices):
            if pulp.value(self.y[c]) > 0.5:
                j = int(p.owner[o])
                option[j], held[j] = o, place
                start[j] = next(e for e, z in enumerate(self.z[c]) if pulp.value(z) > 0.5)
        return seated(p, option, start, held)


def unit_of(run: Run, p: Prepared) -> float:
    """Return what an objective of about 1 stands for."""
    if run.objective:
        return run.objective
    worst = float((p.slope * p.horizon).sum() + p.price[np.isfinite(p.price)].sum())
    return max(worst, p.horizon if p.makespan else 0.0) or 1.0


def cost(amount: float, unit: float) -> float:
    """Return a cost in the unit. More than two of them is no better than two, and digits of 1e9 drown the others."""
    return min(amount / unit, 2.0)


def constant(p: Prepared, unit: float) -> Any:
    """Return the constant of the goal as a term; solvers differ in whether they count one in their bound."""
    return p.constant / unit * pulp.LpVariable("one", 1, 1)
