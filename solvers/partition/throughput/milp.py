"""The same model as a mixed-integer linear programme, through PuLP: HiGHS if it is installed, else CBC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pulp

from gangplan.instances import PartitionPlan, precedence
from gangplan.instances.arrays import BoolArray

from ...pulp_solvers import ABOVE_ONE, APT, TOLERANCE, Model, minimise_lp
from ...run import Run
from ..sizes import Covers, refine, whole
from .bounds import load_ceiling
from .quotient import Quotient

_ROUNDING = 1e-6
"""What solvers may be wrong by, in units."""


def milp(run: Run, q: Quotient) -> None:
    """Minimise the maximum load by MILP and offer the plan found."""
    refine(run, "milp", lambda covers: _Model(q, run, covers), lambda model: model.solve(), APT)


class _Model:
    """Letters as in docs/formulation.md; see `cpsat` for what each constraint says."""

    def __init__(self, q: Quotient, run: Run, covers: Covers) -> None:
        self.q, self.run, self.covers = q, run, covers
        self.lp = Model("partition", lambda: run.stopped)
        self.contiguous = q.problem.variant == "contiguous"
        self.slots = range(int(q.counts.sum()))
        self.types = [int(t) for t in np.flatnonzero(q.counts)]
        # seconds are divided by the ceiling, so that tolerances mean the same on every instance
        self.ceiling = run.objective or load_ceiling(q)
        self.z = pulp.LpVariable("Z", 0, ABOVE_ONE)
        self.x = [[self._binary(f"x_{g}_{s}") for s in self.slots] for g in range(q.n_groups)]
        self.lp += self.z
        for build in (self._assign, self._type_slots, self._order, self._loads, self._memory, self._symmetry):
            if run.stopped:
                return
            build()
        if run.bound is not None:
            self.z.lowBound = min(1.0, run.bound / self.ceiling) * (1 - 10 * TOLERANCE)

    @staticmethod
    def _binary(name: str) -> Any:
        return pulp.LpVariable(name, cat=pulp.LpBinary)

    def _assign(self) -> None:
        for row in self.x:
            self.lp += pulp.lpSum(row) == 1

    def _type_slots(self) -> None:
        q = self.q
        fixed = [t for t in self.types for _ in range(q.counts[t])]
        self.free = self.contiguous and len(self.types) > 1
        self.y: list[dict[int, Any]] = [
            {t: self._binary(f"y_{s}_{t}") for t in self.types} if self.free else {fixed[s]: 1} for s in self.slots
        ]
        if self.free:
            for row in self.y:
                self.lp += pulp.lpSum(row.values()) == 1
            for t in self.types:
                self.lp += pulp.lpSum(row[t] for row in self.y) == int(q.counts[t])
        for t in self.types:
            for g in np.flatnonzero(~self._runs(t)).tolist():
                for s in self.slots:
                    if t in self.y[s]:
                        self.lp += self.x[g][s] <= 1 - self.y[s][t]

    def _runs(self, t: int) -> BoolArray:
        """Return which groups a device of type t can run within the unit; larger coefficients would drown the rest."""
        return np.asarray(self.q.time[t] <= self.ceiling * (1 + _ROUNDING))

    def _order(self) -> None:
        if self.contiguous:
            self._chain()
        elif self.q.problem.variant == "convex":
            self._convex()

    def _chain(self) -> None:
        last = len(self.slots)
        reached = [
            [1, *(pulp.LpVariable(f"P_{g}_{s}", 0, 1) for s in range(1, last)), 0] for g in range(self.q.n_groups)
        ]
        for g, row in enumerate(reached):
            for s in self.slots:
                self.lp += self.x[g][s] == row[s] - row[s + 1]
        for a, b in self.q.edges:
            for s in range(1, last):
                self.lp += reached[a][s] <= reached[b][s]

    def _convex(self) -> None:
        earlier, later = (ends.tolist() for ends in precedence(self.q.problem.graph))
        for s in self.slots:
            p, r = ({v: pulp.LpVariable(f"{name}_{v}_{s}", 0, 1) for v in sorted({*earlier, *later})} for name in "PQ")
            for v in p:
                self.lp += self.x[self.q.group_of[v]][s] == p[v] - r[v]
            for a, b in zip(earlier, later, strict=True):
                self.lp += p[a] <= p[b]
                self.lp += r[a] <= r[b]

    def _loads(self) -> None:
        q = self.q
        # an output that takes more than the unit is forbidden to cross just as well if it takes two
        cost = [min(seconds / self.ceiling, 2.0) for _, seconds in q.nets]
        for s in self.slots:
            tolls: Any = 0
            if not all(q.host[t] for t in self.y[s]):
                tolls = pulp.lpSum(c * self._toll(e, s) for e, c in enumerate(cost))
            for t, chosen in self.y[s].items():
                runs = np.flatnonzero(self._runs(t)).tolist()
                load = pulp.lpSum(q.time[t, g] / self.ceiling * self.x[g][s] for g in runs)
                # a slot of another type is let off by as much as it could ever carry
                most = float(q.time[t, runs].sum()) / self.ceiling + sum(cost)
                slack = most * (1 - chosen) if self.free else 0
                self.lp += load + (0 if q.host[t] else tolls) - slack <= self.z

    def _toll(self, e: int, s: int) -> Any:
        pins = sorted(self.q.nets[e][0])
        toll = pulp.LpVariable(f"k_{e}_{s}", 0, 1)
        if len(pins) == 2:
            a, b = (self.x[g][s] for g in pins)
            self.lp += toll >= a - b
            self.lp += toll >= b - a
            return toll
        some, every = (pulp.LpVariable(f"{name}_{e}_{s}", 0, 1) for name in ("some", "every"))
        for g in pins:
            self.lp += some >= self.x[g][s]
            self.lp += every <= self.x[g][s]
        self.lp += toll >= some - every
        return toll

    def _memory(self) -> None:
        q = self.q
        if not q.memory_binds:
            return
        for t in self.types:
            sizes = whole(q.memory, float(q.capacity[t]), len(q.group_of))
            share, barred = sizes.shares.tolist(), np.flatnonzero(sizes.barred).tolist()
            for s in self.slots:
                if t not in self.y[s]:
                    continue
                other = 1 - self.y[s][t]
                for g in barred:
                    self.lp += self.x[g][s] <= other
                if sizes.binds:
                    used = pulp.lpSum(m * x[s] for m, x in zip(share, self.x, strict=True) if m)
                    self.lp += used - sum(share) * other <= 1
                for cover in self.covers.of(float(q.capacity[t])):
                    self.lp += pulp.lpSum(self.x[g][s] for g in cover) <= len(cover) - 1 + other

    def _symmetry(self) -> None:
        if self.contiguous:
            return
        q = self.q
        t = max(self.types, key=lambda t: int(q.counts[t]))
        slots = [s for s in self.slots if t in self.y[s]]
        for i, g in enumerate(np.argsort(-q.work, kind="stable")[: len(slots)].tolist()):
            for s in slots[i + 1 :]:
                self.x[g][s].upBound = 0

    def solve(self) -> None:
        minimise_lp(self.run, self.lp, self.ceiling, self.plan)

    def plan(self) -> PartitionPlan | None:
        if any(sum(pulp.value(x) > 0.5 for x in row) != 1 for row in self.x):
            return None
        stages = []
        for s in self.slots:
            t = next(t for t, chosen in self.y[s].items() if not self.free or pulp.value(chosen) > 0.5)
            stages.append((t, [g for g in range(self.q.n_groups) if pulp.value(self.x[g][s]) > 0.5]))
        plan = self.q.plan(stages)
        return plan if self.covers.accepts(self.run, plan, self.q.group_of, "milp") else None
