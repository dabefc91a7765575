"""CP-SAT for latency; constraint letters as in docs/latency.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import LatencyPlan

from ...cpsat_solver import cpsat_solver, minimise, parted
from ...run import Run, watched
from ..sizes import Covers, refine, whole
from .bounds import ceiling
from .cpsat_hint import Toll, values
from .reduced import Reduced

T = TypeVar("T")

_OFTEN = 32
_UNITS = 1 << 32
"""What the ceiling of the latency becomes in integers; rounding down keeps the bound a bound."""


def cpsat(run: Run, r: Reduced) -> None:
    """Minimise the latency with CP-SAT, warm-started with the best plan; offers plans as they come."""
    refine(run, "cpsat", lambda covers: Model(r, run, covers), lambda model: model.solve(run))


class Model:
    """Variables, constraints and objective, a method a constraint; `covers` learns what does not go together."""

    def __init__(self, r: Reduced, run: Run, covers: Covers | None = None) -> None:
        self.r, self.run, self.covers = r, run, covers if covers is not None else Covers()
        self.model = cp_model.CpModel()
        self.ceiling = run.objective if run.objective is not None else ceiling(r)
        self.scale = _UNITS / self.ceiling if self.ceiling > 0 else 1.0
        self.calls = range(len(r.callers))
        self.hosts = [s for s, slot in enumerate(r.slots) if slot.host]
        self.types = sorted({r.slots[s].kind for s in r.callers})
        self.limit = _UNITS + len(self.calls) + 1
        new = self.model.new_bool_var
        self.x = [[new("") for _ in self.calls] for _ in r.groups]
        self.h = [[new("") for _ in self.hosts] for _ in r.groups]
        self.ready = [self._time() for _ in range(r.n_items)]
        self.start = [self._time() for _ in self.calls]
        self.finish = [self._time() for _ in self.calls]
        self.z = self._time()
        self.tolls: list[Toll] = []
        for build in (self._assign, self._types, self._order, self._loads, self._flow, self._memory, self._symmetry):
            if run.stopped:
                return
            build()
        self.model.minimize(self.z)
        if run.bound is not None:
            self.model.add(self.z >= int(run.bound * self.scale))
        if run.plan is not None:
            self._hint(run.plan)

    def _time(self) -> Any:
        return self.model.new_int_var(0, self.limit, "")

    def _watched(self, items: Iterable[T]) -> Iterator[T]:
        return watched(items, lambda: self.run.stopped, _OFTEN)

    def units(self, seconds: float) -> int:
        """Return seconds as an integer, rounded down."""
        # whatever is beyond the ceiling is equally forbidden; 64 bits would overflow
        return int(min(seconds * self.scale, 2 * _UNITS))

    def _assign(self) -> None:
        """Add (A): every group is in one call or on one host: sum of x[g, s] + sum of h[g, q] = 1."""
        r = self.r
        for g, (calls, hosts) in enumerate(zip(self.x, self.h, strict=True)):
            self.model.add_exactly_one([*calls, *hosts])
            for q, literal in zip(self.hosts, hosts, strict=True):
                if not r.fits[g, q]:
                    self.model.add(literal == 0)

    def _types(self) -> None:
        """(T) each call is on one accelerator, of a type still open if there are several: y[s, t], n[t] of type t."""
        r, model = self.r, self.model
        of_type = {t: [s for s in r.callers if r.slots[s].kind == t] for t in self.types}
        free = len(self.types) > 1
        self.y: list[dict[int, Any]] = [
            {t: model.new_bool_var("") if free else True for t in self.types} for _ in self.calls
        ]
        if free:
            for row in self.y:
                model.add_exactly_one(row.values())
            for t in self.types:
                model.add(sum(row[t] for row in self.y) == len(of_type[t]))
        for t in self.types:
            for g in np.flatnonzero(~r.fits[:, of_type[t][0]]).tolist():
                for s in self.calls:
                    model.add_implication(self.x[g][s], ~self.y[s][t]) if free else model.add(self.x[g][s] == 0)

    def _order(self) -> None:
        """(C) calls stand in line, host items between them: x[g(v), s] = R[v, s] - Q[v, s] with R[v, s] saying that
        item v is in call s or behind it, Q[v, s] that it is behind, and both grow along every edge."""
        model, r = self.model, self.r
        new = model.new_bool_var
        self.reached = [[new("") for _ in self.calls] for _ in range(r.n_items)]
        self.behind = [[new("") for _ in self.calls] for _ in range(r.n_items)]
        for v, (reached, behind) in self._watched(enumerate(zip(self.reached, self.behind, strict=True))):
            for s in self.calls:
                x = self.x[r.group_of[v]][s]
                model.add_implication(behind[s], reached[s])
                model.add_implication(x, reached[s])
                model.add_implication(x, ~behind[s])
                model.add_bool_or(x, ~reached[s], behind[s])
            for s, t in pairwise(self.calls):
                model.add_implication(reached[t], behind[s])
        for a, b in self._watched(r.edges):
            for s in self.calls:
                model.add_implication(self.reached[a][s], self.reached[b][s])
                model.add_implication(self.behind[a][s], self.behind[b][s])

    def _loads(self) -> None:
        """(L) finish[s] - start[s] = sum of p[t, g] x[g, s] + sum of c[e] k[e, s] if call s is on type t.

        (K) k[e, s] = 1 if call s has some pin of net e and not all.
        """
        r, model = self.r, self.model
        for s in self.calls:
            paid: Any = 0
            for a, consumers, cost in self._watched(r.nets):
                pins = sorted({int(r.group_of[v]) for v in (a, *consumers)})
                if len(pins) > 1:
                    paid += self.units(cost) * self._toll(pins, s)
            for t, chosen in self.y[s].items():
                compute = sum(
                    self.units(r.group_time[t, g]) * self.x[g][s]
                    for g in range(len(r.groups))
                    if np.isfinite(r.group_time[t, g])
                )
                row = model.add(self.finish[s] >= self.start[s] + compute + paid)
                if chosen is not True:
                    row.only_enforce_if(chosen)

    def _toll(self, pins: list[int], s: int) -> Any:
        self.tolls.append(Toll(tuple(pins), s, *parted(self.model, [self.x[g][s] for g in pins])))
        return self.tolls[-1].paid

    def _flow(self) -> None:
        """(F) what runs waits for its inputs: on hosts ready[v] >= ready[u] + p, in calls start[s] >= ready[u] for
        inputs from outside and ready[v] >= finish[s]; Z is at least everything."""
        r, model = self.r, self.model
        before, after = r.neighbours
        for v in self._watched(range(r.n_items)):
            g = int(r.group_of[v])
            for q, on in zip(self.hosts, self.h[g], strict=True):
                if r.fits[g, q]:
                    own = self.units(r.time[r.slots[q].kind, v])
                    for u in before[v]:
                        model.add(self.ready[v] >= self.ready[u] + own).only_enforce_if(on)
                    if not before[v]:
                        model.add(self.ready[v] >= own).only_enforce_if(on)
            for s in self.calls:
                model.add(self.ready[v] >= self.finish[s]).only_enforce_if(self.x[g][s])
            for u in before[v]:
                model.add(self.ready[v] >= self.ready[u])
                for s in self.calls:
                    x, other = self.x[g][s], self.x[int(r.group_of[u])][s]
                    if other is not x:
                        model.add(self.start[s] >= self.ready[u]).only_enforce_if([x, ~other])
            if not after[v]:
                model.add(self.z >= self.ready[v])

    def _memory(self) -> None:
        """(M) sum of m[g] over a slot <= its capacity, see `sizes`."""
        r = self.r
        rooms = {r.slots[s].kind: r.slots[s].capacity for s in r.callers}
        for s in self.calls:
            for t, chosen in self.y[s].items():
                self._within(rooms[t], [row[s] for row in self.x], [] if chosen is True else [chosen])
        for i, q in enumerate(self.hosts):
            self._within(r.slots[q].capacity, [row[i] for row in self.h], [])

    def _within(self, limit: float, here: list[Any], chosen: list[Any]) -> None:
        # what is too large alone `_assign` and `_types` have barred
        sizes = whole(self.r.group_memory, limit, len(self.r.item_of))
        if sizes.binds:
            used = sum(m * x for m, x in zip(sizes.size.tolist(), here, strict=True) if m)
            self.model.add(used <= sizes.room).only_enforce_if(chosen)
        for cover in self.covers.of(limit):
            self.model.add_bool_or([~here[g] for g in cover]).only_enforce_if(chosen)

    def _symmetry(self) -> None:
        model = self.model
        self.used = [model.new_bool_var("") for _ in self.calls[:-1]]
        for s, used in enumerate(self.used):
            model.add_bool_or(~used, *(row[s] for row in self.x))
            for row in self.x:
                model.add_implication(row[s + 1], used)

    def _hint(self, plan: LatencyPlan) -> None:
        slots = self.r.slots_of(plan)
        if slots is not None:
            for variable, value in values(self, slots):
                self.model.add_hint(variable, value)

    def plan(self, value: Any) -> LatencyPlan:
        """Return the plan of a solution; `value` gives the value of a literal."""
        r = self.r
        free = {t: [s for s in r.callers if r.slots[s].kind == t] for t in self.types}
        call = [free[next(t for t, c in row.items() if c is True or value(c))].pop(0) for row in self.y]
        slot = []
        for calls, hosts in zip(self.x, self.h, strict=True):
            chosen = [call[s] for s in self.calls if value(calls[s])]
            chosen += [q for q, literal in zip(self.hosts, hosts, strict=True) if value(literal)]
            slot.append(chosen[0])
        return r.plan(slot)

    def solve(self, run: Run) -> None:
        """Solve, offering plans and raising the bound on the way."""
        solver = cpsat_solver(run)
        # times take their least values once the rest is fixed, or one worker may lower them a tick at a time
        solver.parameters.instantiate_all_variables = False
        minimise(run, solver, self.model, self.scale, partial(self._whole, run))

    def _whole(self, run: Run, value: Any) -> LatencyPlan | None:
        plan = self.plan(value)
        return plan if self.covers.accepts(run, plan, self.r.group_of_op, "cpsat") else None
