"""The same model as a mixed-integer linear programme, through PuLP: HiGHS if it is installed, else CBC."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pulp

from gangplan.instances import LatencyPlan

from ...pulp_solvers import ABOVE_ONE, Model, minimise_lp
from ...run import Run
from ..sizes import Covers, whole
from .bounds import ceiling
from .reduced import Reduced

_ROUNDING = 1e-6
"""What solvers may be wrong by, in units."""
_PASSES = 3


def milp(run: Run, r: Reduced) -> None:
    """Minimise the latency by MILP and offer the plan found."""
    covers, known, again = Covers(), -1, 0
    # tolerances are relative to the unit: solve again where the plan found is far below it, or breaks a limit, or the
    # bound is not quite there
    while not run.stopped and (len(covers.found) > known or again < (_PASSES if run.objective is not None else 1)):
        again += len(covers.found) <= known or not again
        known = len(covers.found)
        with run.phase("milp model"):
            model = _Model(r, run, covers)
        if not run.stopped:
            with run.phase("milp"):
                model.solve(run)


class _Model:
    """Letters as in docs/latency.md; see `cpsat` for what each constraint says."""

    def __init__(self, r: Reduced, run: Run, covers: Covers) -> None:
        self.r, self.run, self.covers = r, run, covers
        self.lp = Model("latency", lambda: run.stopped)
        self.calls = range(len(r.callers))
        self.hosts = [s for s, slot in enumerate(r.slots) if slot.host]
        self.types = sorted({r.slots[s].kind for s in r.callers})
        # seconds are divided by the ceiling, so that tolerances mean the same on every instance
        self.unit = run.objective or ceiling(r)
        self.z = pulp.LpVariable("Z", 0, ABOVE_ONE)
        self.x = [[self._binary(f"x_{g}_{s}") for s in self.calls] for g in range(len(r.groups))]
        self.h = [[self._binary(f"h_{g}_{q}") for q in self.hosts] for g in range(len(r.groups))]
        self.ready = [pulp.LpVariable(f"ready_{v}", 0, ABOVE_ONE) for v in range(r.n_items)]
        self.start = [pulp.LpVariable(f"start_{s}", 0, ABOVE_ONE) for s in self.calls]
        self.finish = [pulp.LpVariable(f"finish_{s}", 0, ABOVE_ONE) for s in self.calls]
        self.lp += self.z
        for build in (self._assign, self._types, self._order, self._loads, self._flow, self._memory, self._symmetry):
            if run.stopped:
                return
            build()

    @staticmethod
    def _binary(name: str) -> Any:
        return pulp.LpVariable(name, cat=pulp.LpBinary)

    def _assign(self) -> None:
        for g, (calls, hosts) in enumerate(zip(self.x, self.h, strict=True)):
            self.lp += pulp.lpSum([*calls, *hosts]) == 1
            for q, literal in zip(self.hosts, hosts, strict=True):
                # larger coefficients than the unit would drown the rest
                if not self.r.fits[g, q] or not self._soon(self.r.time[self.r.slots[q].kind, self.r.groups[g]].max()):
                    literal.upBound = 0

    def _soon(self, seconds: float) -> bool:
        return seconds <= self.unit * (1 + _ROUNDING)

    def _types(self) -> None:
        r = self.r
        of_type = {t: [s for s in r.callers if r.slots[s].kind == t] for t in self.types}
        self.free = len(self.types) > 1
        self.y: list[dict[int, Any]] = [
            {t: self._binary(f"y_{s}_{t}") if self.free else 1 for t in self.types} for s in self.calls
        ]
        if self.free:
            for row in self.y:
                self.lp += pulp.lpSum(row.values()) == 1
            for t in self.types:
                self.lp += pulp.lpSum(row[t] for row in self.y) == len(of_type[t])
        self.able = {
            t: [bool(r.fits[g, of_type[t][0]] and self._soon(r.group_time[t, g])) for g in range(len(r.groups))]
            for t in self.types
        }
        for t in self.types:
            for g in [g for g, able in enumerate(self.able[t]) if not able]:
                for s in self.calls:
                    self.lp += self.x[g][s] <= 1 - self.y[s][t]

    def _order(self) -> None:
        r = self.r
        names = [[f"{v}_{s}" for s in self.calls] for v in range(r.n_items)]
        reached = [[pulp.LpVariable(f"R_{name}", 0, 1) for name in row] for row in names]
        behind = [[pulp.LpVariable(f"Q_{name}", 0, 1) for name in row] for row in names]
        for v in range(r.n_items):
            for s in self.calls:
                self.lp += self.x[r.group_of[v]][s] == reached[v][s] - behind[v][s]
            for s, t in pairwise(self.calls):
                self.lp += reached[v][t] <= behind[v][s]
        for a, b in r.edges:
            for s in self.calls:
                self.lp += reached[a][s] <= reached[b][s]
                self.lp += behind[a][s] <= behind[b][s]
        self.reached, self.behind = reached, behind

    def _loads(self) -> None:
        r = self.r
        for s in self.calls:
            paid = []
            for e, (a, consumers, cost) in enumerate(r.nets):
                pins = sorted({int(r.group_of[v]) for v in (a, *consumers)})
                if len(pins) > 1:
                    # an output that takes more than the unit is forbidden to cross just as well if it takes two
                    paid.append(min(cost / self.unit, 2.0) * self._toll(e, pins, s))
            for t, chosen in self.y[s].items():
                able = [g for g, can in enumerate(self.able[t]) if can]
                load = pulp.lpSum([r.group_time[t, g] / self.unit * self.x[g][s] for g in able] + paid)
                # a call on another type is let off by as much as it could ever take
                most = float(r.group_time[t, able].sum()) / self.unit
                slack = most * (1 - chosen) if self.free else 0
                self.lp += self.finish[s] >= self.start[s] + load - slack

    def _toll(self, e: int, pins: list[int], s: int) -> Any:
        toll = pulp.LpVariable(f"k_{e}_{s}", 0, 1)
        here = [self.x[g][s] for g in pins]
        if len(here) == 2:
            self.lp += toll >= here[0] - here[1]
            self.lp += toll >= here[1] - here[0]
            return toll
        some, every = (pulp.LpVariable(f"{name}_{e}_{s}", 0, 1) for name in ("some", "every"))
        for x in here:
            self.lp += some >= x
            self.lp += every <= x
        self.lp += toll >= some - every
        return toll

    def _flow(self) -> None:
        r = self.r
        before, after = r.neighbours
        for v in range(r.n_items):
            g = int(r.group_of[v])
            own = pulp.lpSum(
                float(r.time[r.slots[q].kind, v]) / self.unit * on
                for q, on in zip(self.hosts, self.h[g], strict=True)
                if on.upBound
            )
            self.lp += self.ready[v] >= own
            for u in before[v]:
                self.lp += self.ready[v] >= self.ready[u] + own
            for s in self.calls:
                self.lp += self.ready[v] >= self.finish[s] - ABOVE_ONE * (1 - self.x[g][s])
                for u in before[v]:
                    other = self.x[int(r.group_of[u])][s]
                    if other is not self.x[g][s]:
                        self.lp += self.start[s] >= self.ready[u] - ABOVE_ONE * (1 - self.x[g][s] + other)
            if not after[v]:
                self.lp += self.z >= self.ready[v]

    def _memory(self) -> None:
        r = self.r
        rooms = {r.slots[s].kind: r.slots[s].capacity for s in r.callers}
        for s in self.calls:
            for t, chosen in self.y[s].items():
                self._within(rooms[t], [row[s] for row in self.x], 1 - chosen)
        for i, q in enumerate(self.hosts):
            self._within(r.slots[q].capacity, [row[i] for row in self.h], 0)

    def _within(self, limit: float, here: list[Any], other: Any) -> None:
        # what is too large alone `_assign` and `_types` have barred
        sizes = whole(self.r.group_memory, limit, len(self.r.item_of))
        if sizes.binds:
            share = sizes.shares.tolist()
            used = pulp.lpSum(m * x for m, x in zip(share, here, strict=True) if m)
            self.lp += used - sum(share) * other <= 1
        for cover in self.covers.of(limit):
            self.lp += pulp.lpSum(here[g] for g in cover) <= len(cover) - 1 + other

    def _symmetry(self) -> None:
        for s, t in pairwise(self.calls):
            for row in self.x:
                self.lp += row[t] <= pulp.lpSum(other[s] for other in self.x)

    def solve(self, run: Run) -> None:
        """Solve, offer the plan and record the bound."""
        minimise_lp(run, self.lp, self.unit, self.plan)

    def plan(self) -> LatencyPlan | None:
        """Return the plan of the solution, binaries rounded, `None` if that leaves a group without a slot."""
        r = self.r
        free = {t: [s for s in r.callers if r.slots[s].kind == t] for t in self.types}
        call = [
            free[next(t for t, chosen in row.items() if not self.free or pulp.value(chosen) > 0.5)].pop(0)
            for row in self.y
        ]
        places = [*call, *self.hosts]
        slot = []
        for calls, hosts in zip(self.x, self.h, strict=True):
            chosen = [p for p, literal in zip(places, [*calls, *hosts], strict=True) if pulp.value(literal) > 0.5]
            if len(chosen) != 1:
                return None
            slot.append(chosen[0])
        plan = r.plan(slot)
        return plan if self.covers.accepts(self.run, plan, r.group_of_op, "milp") else None
