"""CP-SAT for all three variants; constraint letters as in docs/formulation.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import PartitionPlan, precedence

from ...cpsat_solver import cpsat_solver, minimise, parted
from ...run import Run, watched
from ..sizes import Covers, refine, whole
from .bounds import load_ceiling
from .quotient import Quotient

_OFTEN = 32
_UNITS, _FINENESS, _MOST_UNITS = 1 << 29, 4_000_000, 1 << 40
"""What the ceiling of the load becomes in integers, and for each group or net that may be rounded; rounding down keeps
the bound a bound."""


def cpsat(run: Run, q: Quotient) -> None:
    """Minimise the maximum load with CP-SAT, warm-started with the best plan; offers plans as they come."""
    refine(run, "cpsat", lambda covers: Model(q, run, covers), lambda model: model.solve())


class Model:
    """A method a constraint: x[g][s], group g is in slot s; z, the maximum load, in units."""

    def __init__(self, q: Quotient, run: Run, covers: Covers) -> None:
        """Build it; no plan worse than the best of `run` is looked for, and none at all once that has stopped."""
        self.q, self.run, self.covers = q, run, covers
        self.model = cp_model.CpModel()
        self.contiguous = q.problem.variant == "contiguous"
        self.ceiling = run.objective if run.objective is not None else load_ceiling(q)
        self.units = min(max(_UNITS, _FINENESS * (q.n_groups + len(q.nets))), _MOST_UNITS)
        self.scale = self.units / self.ceiling if self.ceiling > 0 else 1.0
        self.slots = range(int(q.counts.sum()))
        self.types = [int(t) for t in np.flatnonzero(q.counts)]
        self.z = self.model.new_int_var(0, self.units, "Z")
        self.x = [[self.model.new_bool_var("") for _ in self.slots] for _ in range(q.n_groups)]
        for build in (self._assign, self._type_slots, self._order, self._loads, self._memory, self._symmetry):
            if run.stopped:
                return
            build()
        self.model.minimize(self.z)
        if run.bound is not None:
            self.model.add(self.z >= int(run.bound * self.scale))
        if run.plan is not None:
            self._hint(run.plan)

    def _int(self, seconds: float) -> int:
        # whatever is beyond the ceiling is equally forbidden; 64 bits would overflow
        return int(min(seconds * self.scale, 2 * self.units))

    def _assign(self) -> None:
        """Add (A): every group is in exactly one slot: sum over s of x[g, s] = 1."""
        for row in self.x:
            self.model.add_exactly_one(row)

    def _type_slots(self) -> None:
        """(T) each slot is one device; for a pipeline which type it has is open: y[s, t], n[t] slots of type t.

        Otherwise slots are the devices themselves. x[g, s] = 0 where the type cannot run g.
        """
        model, q = self.model, self.q
        fixed = [t for t in self.types for _ in range(q.counts[t])]
        free = self.contiguous and len(self.types) > 1
        self.y: list[dict[int, Any]] = [
            {t: model.new_bool_var("") if free else fixed[s] == t for t in self.types if free or fixed[s] == t}
            for s in self.slots
        ]
        if free:
            for row in self.y:
                model.add_exactly_one(row.values())
            for t in self.types:
                model.add(sum(row[t] for row in self.y) == int(q.counts[t]))
        for t in self.types:
            for g in np.flatnonzero(~np.isfinite(q.time[t])).tolist():
                for s in self.slots:
                    if t in self.y[s]:
                        model.add_implication(self.x[g][s], ~self.y[s][t]) if free else model.add(self.x[g][s] == 0)

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
        model, q = self.model, self.q
        last, stopped = len(self.slots), lambda: self.run.stopped
        true, false = model.new_constant(1), model.new_constant(0)
        self.reached = [[true, *(model.new_bool_var("") for _ in range(1, last)), false] for _ in range(q.n_groups)]
        for g, reached in watched(enumerate(self.reached), stopped, _OFTEN):
            for s in self.slots:
                model.add_implication(reached[s + 1], reached[s])
                model.add_implication(self.x[g][s], reached[s])
                model.add_implication(self.x[g][s], ~reached[s + 1])
                model.add_bool_or(self.x[g][s], ~reached[s], reached[s + 1])
        for a, b in watched(q.edges, stopped, _OFTEN):
            for s in range(1, last):
                model.add_implication(self.reached[a][s], self.reached[b][s])

    def _convex(self) -> None:
        model, q = self.model, self.q
        earlier, later = (ends.tolist() for ends in precedence(q.problem.graph))
        for s in watched(self.slots, lambda: self.run.stopped, 1):
            p, r = ({v: model.new_bool_var("") for v in sorted({*earlier, *later})} for _ in range(2))
            for v in p:
                x = self.x[q.group_of[v]][s]
                model.add_implication(r[v], p[v])
                model.add_implication(x, p[v])
                model.add_implication(x, ~r[v])
                model.add_bool_or(x, ~p[v], r[v])
            for a, b in zip(earlier, later, strict=True):
                model.add_implication(p[a], p[b])
                model.add_implication(r[a], r[b])

    def _loads(self) -> None:
        """(L) sum of p[t, g] x[g, s] + sum of c[e] k[e, s] <= Z for a slot of type t; hosts pay no c.

        (K) k[e, s] = 1 if slot s has some pin of net e and not all.
        """
        model, q = self.model, self.q
        for s in watched(self.slots, lambda: self.run.stopped, 1):
            if all(q.host[t] for t in self.y[s]):
                tolls: Any = 0
            else:
                tolls = sum(
                    self._int(cost) * parted(model, [self.x[g][s] for g in sorted(pins)])[0] for pins, cost in q.nets
                )
            for t, chosen in self.y[s].items():
                compute = sum(
                    self._int(q.time[t, g]) * self.x[g][s] for g in range(q.n_groups) if np.isfinite(q.time[t, g])
                )
                load = model.add(compute + (0 if q.host[t] else tolls) <= self.z)
                if chosen is not True:
                    load.only_enforce_if(chosen)

    def _memory(self) -> None:
        """(M) sum of m[g] x[g, s] <= capacity of the slot's type, see `sizes`."""
        q, model = self.q, self.model
        for t in self.types if q.memory_binds else ():
            sizes = whole(q.memory, float(q.capacity[t]), len(q.group_of))
            barred, size = np.flatnonzero(sizes.barred).tolist(), sizes.size.tolist()
            covers = list(self.covers.of(float(q.capacity[t])))
            for s in self.slots:
                if t not in self.y[s]:
                    continue
                chosen = [] if self.y[s][t] is True else [self.y[s][t]]
                for g in barred:
                    model.add(self.x[g][s] == 0).only_enforce_if(chosen)
                if sizes.binds:
                    used = sum(m * x[s] for m, x in zip(size, self.x, strict=True) if m)
                    model.add(used <= sizes.room).only_enforce_if(chosen)
                for cover in covers:
                    model.add_bool_or([~self.x[g][s] for g in cover]).only_enforce_if(chosen)

    def _symmetry(self) -> None:
        """(S) equal devices are interchangeable unless in a chain: the i-th largest group is on one of the first i."""
        if self.contiguous or len(self.types) == 0:
            return
        q = self.q
        t = max(self.types, key=lambda t: int(q.counts[t]))
        slots = [s for s in self.slots if t in self.y[s]]
        largest = np.argsort(-q.work, kind="stable")[: len(slots)].tolist()
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
        free = {t: [s for s in self.slots if t in self.y[s]] for t in self.types}
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

    def solve(self) -> None:
        """Minimise to the end of the run."""
        minimise(self.run, cpsat_solver(self.run), self.model, self.scale, self._fitting)

    def _fitting(self, value: Any) -> PartitionPlan | None:
        plan = self.plan(value)
        return plan if self.covers.accepts(self.run, plan, self.q.group_of, "cpsat") else None
