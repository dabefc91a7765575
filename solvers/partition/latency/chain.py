"""What a plan does to one path of the graph: intervals of it are in calls, the rest runs on hosts.

Take a path p[0], ..., p[m-1]. A call that holds p[i] and p[j] holds all items between them, for no call waits for
itself; so the path falls into intervals, each in one call, and single items on hosts, one after the other in time.
A call that meets the path in p[i..j] exactly

- holds the hull H: all items with p[i] before or equal and p[j] after or equal;
- holds none of the items E that are before p[i-1] or after p[j+1], or these themselves;
- is free to hold any of the others, O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.graph import heaviest_path

from ...run import never
from ..sizes import most
from .reduced import ReducedLatency

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Chain:
    """A path and where all items stand to it.

    Attributes:
        path: items, each before the next; m of them.
        stopped: whether to leave out what is not needed for a bound.
    """

    r: ReducedLatency
    path: tuple[int, ...]
    stopped: Callable[[], bool] = never

    @cached_property
    def lo(self) -> Index:
        """The last place of the path at or before each item, -1 if none."""
        before, _ = self.r.neighbours
        lo = [-1] * self.r.n_items
        for i, v in enumerate(self.path):
            lo[v] = i
        for v in range(self.r.n_items):
            lo[v] = max((lo[u] for u in before[v]), default=-1) if lo[v] < 0 else lo[v]
        return np.array(lo)

    @cached_property
    def hi(self) -> Index:
        """The first place of the path at or behind each item, m if none."""
        _, after = self.r.neighbours
        last = len(self.path)
        hi = [last] * self.r.n_items
        for i, v in enumerate(self.path):
            hi[v] = i
        for v in reversed(range(self.r.n_items)):
            hi[v] = min((hi[u] for u in after[v]), default=last) if hi[v] == last else hi[v]
        return np.array(hi)

    def sides(self, i: int, j: int) -> tuple[BoolArray, BoolArray]:
        """Return which items are in H and which in E for a call on p[i..j], bool (I,) each."""
        return (self.lo >= i) & (self.hi <= j), (self.hi < i) | (self.lo > j)

    @cached_property
    def host(self) -> FloatArray:
        """Seconds of each place of the path on the host that is fastest, infinite if none runs it, (m,)."""
        r = self.r
        kinds = sorted({slot.kind for slot in r.slots if slot.host})
        path = list(self.path)
        return np.asarray(r.time[kinds][:, path].min(axis=0)) if kinds else np.full(len(path), np.inf)

    @cached_property
    def loads(self) -> dict[int, FloatArray]:
        """At least the seconds of a call on p[i..j], for each type, infinite if it cannot be, (m, m).

        The compute of H, and the nets with pins both in H and in E.
        """
        r, m = self.r, len(self.path)
        place = np.arange(m)
        cut = self._certain()
        memory = self._within(r.memory)
        found: dict[int, FloatArray] = {}
        for t, slots in r.by_type.items():
            runs = np.isfinite(r.time[t])
            seconds = self._within(np.where(runs, r.time[t], 0.0)) + cut
            barred = self._within((~runs).astype(float)) > 0.5
            barred |= memory > most(r.slots[slots[0]].capacity, len(r.item_of))
            seconds[barred | (place[:, None] > place[None, :])] = np.inf
            found[t] = seconds
        return found

    def _within(self, amount: FloatArray) -> FloatArray:
        m = len(self.path)
        corner = np.zeros((m, m))
        inner = (self.lo >= 0) & (self.hi < m)
        np.add.at(corner, (self.lo[inner], self.hi[inner]), amount[inner])
        return np.asarray(corner[::-1].cumsum(axis=0)[::-1].cumsum(axis=1))

    def _certain(self) -> FloatArray:
        """Return the cost of the nets with pins both in H and in E, (m, m), or of some of them if time is up."""
        m = len(self.path)
        total = np.zeros((m, m))
        for e, (a, consumers, cost) in enumerate(self.r.nets):
            if e % 64 == 0 and self.stopped():
                break
            pins = np.array([a, *consumers])
            lo, hi = self.lo[pins], self.hi[pins]
            inner = (lo >= 0) & (hi < m)
            if not inner.any():
                continue
            # some pin is in H if i <= lo and j >= hi for it; some is in E if i > the least hi or j < the greatest lo
            top, left = int(lo[inner].max()) + 1, int(hi[inner].min())
            held = np.zeros((top, m - left), dtype=bool)
            for a_lo, a_hi in zip(lo[inner].tolist(), hi[inner].tolist(), strict=True):
                held[: a_lo + 1, a_hi - left :] = True
            i, j = np.arange(top)[:, None], np.arange(left, m)[None, :]
            total[:top, left:] += cost * (held & ((i > hi.min()) | (j < lo.max())))
        return total


def longest(r: ReducedLatency, weight: FloatArray) -> Chain:
    """Return the path of the greatest total `weight`, (I,)."""
    return Chain(r, heaviest_path(range(r.n_items), r.neighbours[0], weight.tolist()))
