"""Preprocessing: merge an item into a neighbour where some optimal plan has them in one call or on one host.

Let q be the only predecessor, or the only successor, of item u, and let

    saved = sum(c[e] : e = {u, q}),  added = sum(c[e] : u in e, q not in e).

Take any plan in which u is elsewhere and move it to q. A call with q then saves `saved`, and pays p[t, u] and at most
`added`; the call that u leaves saves p[t, u] and `saved`, which it paid for u alone, and pays at most `added`; others
pay what they did. So if

    p[t, u] <= saved - added           for every accelerator type t that can hold q,
    p[t, u] <= p[t', u] + saved - added  for every host type t that can hold q and every accelerator type t',
    p[t, u] <= p[t', u]                  for every such t and every host type t',

no call takes longer and no result comes later: on a host u is done by the time the call it left was, for that call
took at least p[t', u] + saved after the last input of u was there. No call waits for another that it did not wait for
before. Memory must not forbid the move, so m[u] = 0 or everything fits everywhere, and u must be free to move.

As an item of their own the two are exact on a host if u takes no time there, or if each is all that the other waits
for or serves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.graph import grouped

from ...run import never, watched
from .. import saved
from .reduced import ReducedLatency, merged


def dominate(r: ReducedLatency, stopped: Callable[[], bool] = never) -> ReducedLatency:
    """Return `r` with dominated items merged; its optimum is the same."""
    while True:
        into, total = _Pass(r, stopped).run()
        if all(v == q for v, q in enumerate(into)):
            return r
        r = merged(r, into, total)


class _Pass:
    def __init__(self, r: ReducedLatency, stopped: Callable[[], bool]) -> None:
        self.r, self.stopped = r, stopped
        nets = ((consumers | {a}, cost) for a, consumers, cost in watched(r.nets, stopped))
        self.touching = grouped(((v, net) for net in nets for v in net[0]), r.n_items)
        self.calls = [*r.by_type]
        self.hosts = sorted({slot.kind for slot in r.slots if slot.host})
        self.tight = any(r.memory.sum() > slot.capacity for slot in r.slots)
        self.time = r.time.tolist()
        self.alone = [len(r.groups[g]) == 1 for g in r.group_of.tolist()]

    def run(self) -> tuple[list[int], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        """Return the item that each goes into, and the seconds of all, float64 (T, I); no item takes part twice."""
        r = self.r
        before, after = r.neighbours
        into, busy = list(range(r.n_items)), [False] * r.n_items
        total = r.time.copy()
        for u in watched(range(r.n_items), self.stopped):
            for near, far in ((before, after), (after, before)):
                if busy[u] or len(near[u]) != 1 or busy[near[u][0]]:
                    continue
                q = near[u][0]
                if self._dominated(u, q, link=len(far[q]) == 1):
                    into[u], busy[u], busy[q] = q, True, True
                    total[:, q] += total[:, u]
        return into, total

    def _dominated(self, u: int, q: int, *, link: bool) -> bool:
        r = self.r
        if not self.alone[u] or (self.tight and r.memory[u] > 0):
            return False
        gain = saved(self.touching[u], q)
        for t in self.calls:
            if np.isfinite(self.time[t][q]) and self.time[t][u] > gain:
                return False
        for t in self.hosts:
            own = self.time[t][u]
            if not np.isfinite(self.time[t][q]):
                continue
            if own > 0 and not link:
                return False
            if any(own > self.time[other][u] + gain for other in self.calls):
                return False
            if any(own > self.time[other][u] for other in self.hosts):
                return False
        return True
