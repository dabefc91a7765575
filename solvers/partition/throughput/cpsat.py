"""CP-SAT for all three variants; constraint letters as in docs/formulation.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import PartitionPlan, precedence

from ...cpsat_solver import parted
from ...run import Run
from ..device_model import DeviceModel
from ..sizes import CoverCuts, refine, whole
from .bounds import load_ceiling
from .quotient import Quotient

_UNITS, _FINENESS, _MOST_UNITS = 1 << 29, 4_000_000, 1 << 40
"""What the ceiling of the load becomes in integers, and for each group or net that may be rounded; rounding down keeps
the bound a bound."""


def cpsat(run: Run, q: Quotient) -> None:
    """Minimise the maximum load with CP-SAT, warm-started with the best plan; offers plans as they come."""
    refine(run, "cpsat", lambda covers: ThroughputModel(q, run, covers), lambda model: model.solve(model.plan))


class ThroughputModel(DeviceModel):
    """A method a constraint; z is the maximum load, in units."""

    def __init__(self, q: Quotient, run: Run, covers: CoverCuts) -> None:
        """Build it; no plan worse than the best of `run` is looked for, and none at all once that has stopped."""
        units = min(max(_UNITS, _FINENESS * (q.n_groups + len(q.nets))), _MOST_UNITS)
        super().__init__(run, covers, load_ceiling(q), units, q.group_of)
        self.q, self.contiguous = q, q.problem.variant == "contiguous"
        self.slots = range(int(q.counts.sum()))
        self.counts = {t: int(q.counts[t]) for t in np.flatnonzero(q.counts).tolist()}
        self.z = self.model.new_int_var(0, units, "Z")
        self.x = [[self.model.new_bool_var("") for _ in self.slots] for _ in range(q.n_groups)]
        parts = self._assign, self._types, self._order, self._loads, self._memory, self._symmetry
        self.build(*parts, hint=self._hint)

    def _assign(self) -> None:
        """Add (A): every group is in exactly one slot: sum over s of x[g, s] = 1."""
        for row in self.x:
            self.model.add_exactly_one(row)

    def _types(self) -> None:
        """Add (T); for a pipeline which type a slot has is open, otherwise slots are the devices themselves."""
        fixed = [[t] for t, count in self.counts.items() for _ in range(count)]
        kinds = [[*self.counts]] * len(fixed) if self.contiguous else fixed
        self.types(kinds, self.counts, lambda t: np.isfinite(self.q.time[t]))

    def _order(self) -> None:
        """(C) contiguous: x[g, s] = P[g, s] - P[g, s+1] with P up-sets of the order, nested in s.

        (V) convex: x[g(v), s] = P[v, s] - Q[v, s] with P and Q up-sets of the ops' order, Q within P: a set is
        convex just if it is the difference of two nested up-sets.
        """
        if self.contiguous:
            self._chain()
        elif self.q.problem.variant == "convex":
            self._convex()

    def _chain(self) -> None:
        model, q, last = self.model, self.q, len(self.slots)
        true, false = model.new_constant(1), model.new_constant(0)
        self.reached = [[true, *(model.new_bool_var("") for _ in range(1, last)), false] for _ in range(q.n_groups)]
        for g, reached in self.watched(enumerate(self.reached)):
            for s in self.slots:
                self.between(self.x[g][s], reached[s], reached[s + 1])
        for a, b in self.watched(q.edges):
            for s in range(1, last):
                model.add_implication(self.reached[a][s], self.reached[b][s])

    def _convex(self) -> None:
        model, q = self.model, self.q
        earlier, later = (ends.tolist() for ends in precedence(q.problem.graph))
        for s in self.watched(self.slots, 1):
            p, r = ({v: model.new_bool_var("") for v in sorted({*earlier, *later})} for _ in range(2))
            for v in p:
                self.between(self.x[q.group_of[v]][s], p[v], r[v])
            for a, b in zip(earlier, later, strict=True):
                model.add_implication(p[a], p[b])
                model.add_implication(r[a], r[b])

    def _loads(self) -> None:
        """(L) sum of p[t, g] x[g, s] + sum of c[e] k[e, s] <= Z for a slot of type t; hosts pay no c.

        (K) k[e, s] = 1 if slot s has some pin of net e and not all.
        """
        model, q = self.model, self.q
        for s in self.watched(self.slots, 1):
            nets = () if all(q.host[t] for t in self.y[s]) else q.nets
            tolls = sum(
                self.units(cost) * parted(model, [self.x[g][s] for g in sorted(pins)])[0] for pins, cost in nets
            )
            for t in self.y[s]:
                load = self.compute(s, q.time[t]) + (0 if q.host[t] else tolls)
                model.add(load <= self.z).only_enforce_if(self.given(s, t))

    def _memory(self) -> None:
        """(M) sum of m[g] x[g, s] <= capacity of the slot's type, see `sizes`."""
        q = self.q
        for t in self.counts if q.memory_binds else ():
            limit = float(q.capacity[t])
            sizes = whole(q.memory, limit, len(q.group_of))
            for s in (s for s in self.slots if t in self.y[s]):
                for g in np.flatnonzero(sizes.barred).tolist():
                    self.model.add(self.x[g][s] == 0).only_enforce_if(self.given(s, t))
                self.hold(sizes, limit, [row[s] for row in self.x], self.given(s, t))

    def _symmetry(self) -> None:
        """(S) equal devices are interchangeable unless in a chain: the i-th largest group is on one of the first i."""
        if self.contiguous or not self.counts:
            return
        most = max(self.counts, key=self.counts.__getitem__)
        slots = [s for s in self.slots if most in self.y[s]]
        largest = np.argsort(-self.q.work, kind="stable")[: len(slots)].tolist()
        for i, g in enumerate(largest):
            for s in slots[i + 1 :]:
                self.model.add(self.x[g][s] == 0)

    def _hint(self, plan: PartitionPlan) -> None:
        slots = self._slots_of(plan)
        for g, row in enumerate(self.x):
            for s, x in enumerate(row):
                self.model.add_hint(x, s == slots[g])

    def _slots_of(self, plan: PartitionPlan) -> list[int]:
        q = self.q
        first = np.unique(q.group_of, return_index=True)[1]
        if self.contiguous:
            stage: list[int] = plan.stage[first].tolist()
            return stage
        device = plan.device[first].tolist()
        kind = q.problem.cluster.type_of
        rename: dict[int, int] = {}
        free = {t: [s for s in self.slots if t in self.y[s]] for t in self.counts}
        for g in np.argsort(-q.work, kind="stable").tolist():
            if device[g] not in rename:
                rename[device[g]] = free[int(kind[device[g]])].pop(0)
        return [rename[d] for d in device]

    def plan(self, value: Any) -> PartitionPlan:
        """Return the plan of a solution; `value` gives the value of a literal."""
        q = self.q
        stages = []
        for s in self.slots:
            t = next(t for t, chosen in self.y[s].items() if chosen is True or value(chosen))
            stages.append((t, [g for g in range(q.n_groups) if value(self.x[g][s])]))
        return q.plan(stages)
