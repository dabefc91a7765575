"""The event-based MILP, through PuLP: which jobs run after each event (Kone, Artigues, Lopez and Mongeau 2011, OOE).

Events are starts, as many as jobs, in order; times are continuous, so any durations will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pulp

from gangplan.instances.schedule import SchedulePlan

from ..pulp_solvers import available_solvers, minimise_lp
from ..run import Run
from .milp_time import constant, cost, unit_of
from .places import places
from .prepare import Prepared
from .seated import Place, seated
from .sizes import horizon


def milp_events(run: Run, p: Prepared, name: str | None = None) -> None:
    """Minimise the goal by the event-based MILP and offer the schedule found.

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
    """y[c]: choice c of an option and a place is made; z[c, e]: it runs after event e; t[e]: when that is."""

    def __init__(self, run: Run, p: Prepared) -> None:
        self.p, self.lp = p, pulp.LpProblem("schedule", pulp.LpMinimize)
        self.unit = unit_of(run, p)
        self.choices = [(o, place) for o in range(len(p.gpus)) for place in places(p, o)]
        self.long = horizon(p) or 1.0
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
