"""Preprocessing: merge a group into a neighbour where some optimal plan has them on one device.

Let group u be free to move onto the device of its neighbour q whatever the plan: q is its only predecessor (or
its only successor) in the order, or the variant is ``free``. The move removes the nets {u, q} from both devices'
bills and at worst adds u's other nets to q's. So if

    p[t, u] + sum(c[e] : u in e, q not in e) <= sum(c[e] : e = {u, q})    for every accelerator type t that can hold q,
    p[t, u] = 0                                                            for every host type t that can hold q,

no device's load grows, and u may be merged into q. Memory must not forbid the move: m[u] = 0, or everything fits
on any one device.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np

from gangplan.instances import precedence

from ...run import never, watched
from .. import saved
from .quotient import Quotient, merged

_SLACK = 1e-12


def dominate(q: Quotient, stopped: Callable[[], bool] = never) -> Quotient:
    """Return `q` with dominated groups merged; its optimum is the same."""
    return _Merger(q, stopped).run()


class _Merger:
    def __init__(self, q: Quotient, stopped: Callable[[], bool]) -> None:
        self.q, self.stopped = q, stopped
        self.variant = q.problem.variant
        self.time = [row.copy() for row in watched(q.time.T, stopped)]
        self.memory = q.memory.tolist()
        self.pins = [set(pins) for pins, _ in watched(q.nets, stopped)]
        self.cost = [cost for _, cost in q.nets]
        self.touching: list[set[int]] = [set() for _ in range(q.n_groups)]
        for e, pins in enumerate(self.pins):
            for g in pins:
                self.touching[g].add(e)
        before, after = q.neighbours
        self.before, self.after = [set(x) for x in before], [set(x) for x in after]
        self.into = list(range(q.n_groups))
        # of its ops, as far as they take part in the order, there is just one, as the convex rule needs
        ordered = q.group_of[np.unique(np.concatenate(precedence(q.problem.graph)))]
        self.single = (np.bincount(ordered, minlength=q.n_groups) <= 1).tolist()
        self.present = np.flatnonzero(q.counts).tolist()

    def run(self) -> Quotient:
        waiting = list(range(self.q.n_groups))
        while waiting:
            again: set[int] = set()
            for u in watched(waiting, self.stopped):
                if self.into[u] != u:
                    continue
                for v in sorted(self._hosts(u)):
                    if self._dominated(u, v):
                        again |= self._merge(u, v)
                        break
            waiting = sorted(again)
        return self._result()

    def _hosts(self, u: int) -> set[int]:
        if self.variant == "free":
            # what takes time gains only by a net that u shares with one group alone; other pairs are many in a star
            idle = any(self.time[u][t] <= 0 for t in self.present)
            return set().union(*(self.pins[e] for e in self.touching[u] if idle or len(self.pins[e]) == 2)) - {u}
        if self.variant == "convex" and not self.single[u]:
            return set()
        return {v for side in (self.before[u], self.after[u]) if len(side) == 1 for v in side}

    def _dominated(self, u: int, v: int) -> bool:
        q = self.q
        if q.memory_binds and self.memory[u] > 0:
            return False
        gain = saved(((self.pins[e], self.cost[e]) for e in self.touching[u]), v)
        for t in self.present:
            if not isfinite(self.time[v][t]):
                continue
            if self.time[u][t] * (1 - _SLACK) > (0.0 if q.host[t] else gain):
                return False
        return True

    def _merge(self, u: int, v: int) -> set[int]:
        self.into[u] = v
        self.time[v] = self.time[v] + self.time[u]
        self.memory[v] += self.memory[u]
        self.single[v] = False
        for e in self.touching[u]:
            self.pins[e].discard(u)
            self.pins[e].add(v)
            self.touching[v].add(e)
            if len(self.pins[e]) == 1:
                self.touching[v].discard(e)
        changed = {v}
        for side, other in ((self.before, self.after), (self.after, self.before)):
            for x in side[u]:
                other[x].discard(u)
                if x != v:
                    other[x].add(v)
                    side[v].add(x)
                    changed.add(x)
        changed |= set().union(*(self.pins[e] for e in self.touching[v])) if self.variant == "free" else set()
        return changed

    def _result(self) -> Quotient:
        into = np.array(self.into)
        while (into != into[into]).any():
            into = into[into]
        return self.q if (into == np.arange(self.q.n_groups)).all() else merged(self.q, into)
