"""CP-SAT for latency; constraint letters as in docs/latency.md."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gangplan.instances import LatencyPlan

from ...cpsat_solver import parted
from ...run import Run
from ..device_model import DeviceModel
from ..sizes import CoverCuts, refine, whole
from .bounds import ceiling
from .cpsat_hint import Toll, values
from .reduced import ReducedLatency

_UNITS = 1 << 32
"""What the ceiling of the latency becomes in integers; rounding down keeps the bound a bound."""


def cpsat(run: Run, r: ReducedLatency) -> None:
    """Minimise the latency with CP-SAT, warm-started with the best plan; offers plans as they come."""

    def solve(model: LatencyModel) -> None:
        # one worker may lower times a tick at a time
        model.solve(model.plan, instantiate=False)

    refine(run, "cpsat", lambda covers: LatencyModel(r, run, covers), solve)


class LatencyModel(DeviceModel):
    """A method a constraint; slots are calls, z is the latency, in units."""

    def __init__(self, r: ReducedLatency, run: Run, covers: CoverCuts | None = None) -> None:
        super().__init__(run, covers if covers is not None else CoverCuts(), ceiling(r), _UNITS, r.group_of_op)
        self.r, self.calls = r, range(len(r.callers))
        self.hosts = [s for s, slot in enumerate(r.slots) if slot.host]
        self.kinds = [*r.by_type]
        self.limit = _UNITS + len(self.calls) + 1
        new = self.model.new_bool_var
        self.x = [[new("") for _ in self.calls] for _ in r.groups]
        self.h = [[new("") for _ in self.hosts] for _ in r.groups]
        self.ready = [self._time() for _ in range(r.n_items)]
        self.start = [self._time() for _ in self.calls]
        self.finish = [self._time() for _ in self.calls]
        self.z = self._time()
        self.tolls: list[Toll] = []
        parts = self._assign, self._types, self._order, self._loads, self._flow, self._memory, self._symmetry
        self.build(*parts, hint=self._hint)

    def _time(self) -> Any:
        return self.model.new_int_var(0, self.limit, "")

    def _assign(self) -> None:
        """Add (A): every group is in one call or on one host: sum of x[g, s] + sum of h[g, q] = 1."""
        r = self.r
        for g, (calls, hosts) in enumerate(zip(self.x, self.h, strict=True)):
            self.model.add_exactly_one([*calls, *hosts])
            for q, literal in zip(self.hosts, hosts, strict=True):
                if not r.fits[g, q]:
                    self.model.add(literal == 0)

    def _types(self) -> None:
        """Add (T): each call is on one accelerator, of any type."""
        count = {t: len(slots) for t, slots in self.r.by_type.items()}
        self.types([self.kinds] * len(self.calls), count, lambda t: self.r.fits[:, self.r.by_type[t][0]])

    def _order(self) -> None:
        """(C) calls stand in line, host items between them: x[g(v), s] = R[v, s] - Q[v, s] with R[v, s] saying that
        item v is in call s or behind it, Q[v, s] that it is behind, and both grow along every edge."""
        model, r = self.model, self.r
        new = model.new_bool_var
        self.reached = [[new("") for _ in self.calls] for _ in range(r.n_items)]
        self.behind = [[new("") for _ in self.calls] for _ in range(r.n_items)]
        for v, (reached, behind) in self.watched(enumerate(zip(self.reached, self.behind, strict=True))):
            for s in self.calls:
                self.between(self.x[r.group_of[v]][s], reached[s], behind[s])
            for s, t in pairwise(self.calls):
                model.add_implication(reached[t], behind[s])
        for a, b in self.watched(r.edges):
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
            for a, consumers, cost in self.watched(r.nets):
                pins = sorted({int(r.group_of[v]) for v in (a, *consumers)})
                if len(pins) > 1:
                    paid += self.units(cost) * self._toll(pins, s)
            for t in self.y[s]:
                end = self.start[s] + self.compute(s, r.group_time[t]) + paid
                model.add(self.finish[s] >= end).only_enforce_if(self.given(s, t))

    def _toll(self, pins: list[int], s: int) -> Any:
        self.tolls.append(Toll(tuple(pins), s, *parted(self.model, [self.x[g][s] for g in pins])))
        return self.tolls[-1].paid

    def _flow(self) -> None:
        """(F) what runs waits for its inputs: on hosts ready[v] >= ready[u] + p, in calls start[s] >= ready[u] for
        inputs from outside and ready[v] >= finish[s]; Z is at least everything."""
        r, model = self.r, self.model
        before, after = r.neighbours
        for v in self.watched(range(r.n_items)):
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
        limits = {t: r.slots[slots[0]].capacity for t, slots in r.by_type.items()}
        held = [([row[s] for row in self.x], limits[t], self.given(s, t)) for s in self.calls for t in self.y[s]]
        held += [([row[i] for row in self.h], r.slots[q].capacity, []) for i, q in enumerate(self.hosts)]
        for here, limit, given in held:
            self.hold(whole(r.group_memory, limit, len(r.item_of)), limit, here, given)

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
        free = {t: list(slots) for t, slots in r.by_type.items()}
        call = [free[next(t for t, c in row.items() if c is True or value(c))].pop(0) for row in self.y]
        slot = []
        for calls, hosts in zip(self.x, self.h, strict=True):
            chosen = [call[s] for s in self.calls if value(calls[s])]
            chosen += [q for q, literal in zip(self.hosts, hosts, strict=True) if value(literal)]
            slot.append(chosen[0])
        return r.plan(slot)
