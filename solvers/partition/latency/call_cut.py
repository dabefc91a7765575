"""The cheapest call on an interval of a path: a minimum cut, within the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.graph import grouped

from ...flows import minimum_cut
from ..sizes import most
from .chain import Chain

_INFINITE = 1 << 52
_UNITS = 1 << 40
_LEAVES = 24
"""Cuts a call may take until its memory is respected."""
_LARGEST = 3000
"""Items of O beyond which one cut takes too long."""


class CallCut:
    """Chooses among the items O of a call those that make it cheapest.

    Item v in the call is v on the source side of a cut: then it costs p[t, v]. A net with pins on both sides costs
    c[e]. Convexity: an item before the hull takes along its successors before the hull, one behind it its
    predecessors there. Items of a group go together. Where the items chosen do not fit the memory, the largest group
    among them is branched on. `ceiling`: seconds that no sensible call reaches.
    """

    def __init__(self, chain: Chain, ceiling: float) -> None:
        self.chain, self.r = chain, chain.r
        self.scale = _UNITS / ceiling if ceiling > 0 else 1.0
        r = self.r
        self.capacity = {t: r.slots[slots[0]].capacity for t, slots in r.by_type.items()}
        self.pins = [[a, *consumers] for a, consumers, _ in r.nets]
        self.flat = np.array([v for pins in self.pins for v in pins], dtype=np.int64)
        self.net = np.repeat(np.arange(len(self.pins)), [len(pins) for pins in self.pins])
        self.touching = grouped(((v, e) for e, pins in enumerate(self.pins) for v in pins), r.n_items)

    def least(self, i: int, j: int, t: int) -> float:
        """Return at least the seconds of a call on p[i..j] on type t beyond `Chain.loads`.

        It is 0 if time is up or the cut would be too large.
        """
        hull, barred = self.chain.sides(i, j)
        status = np.where(hull, 1, np.where(barred, 2, 0)).tolist()
        active, mates = self._active(status, hull)
        if any(status[v] == 2 for v in mates):
            return np.inf
        if len(active) > _LARGEST:
            return 0.0
        room = most(self.capacity[t], len(self.r.item_of)) - self._memory(np.flatnonzero(hull).tolist())
        best: float = np.inf
        waiting: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(mates), frozenset())]
        leaves = 0
        while waiting:
            if self.chain.stopped():
                return 0.0
            inside, outside = waiting.pop()
            leaves += 1
            value, chosen = self._cut(i, j, t, status, active, inside, outside)
            if value >= best:
                continue
            fits = self._memory(chosen) <= room
            open_groups = {int(self.r.group_of[v]) for v in chosen - inside}
            if fits or not open_groups or leaves >= _LEAVES:
                if fits or open_groups:
                    best = value
                continue
            g = max(open_groups, key=lambda g: (float(self.r.group_memory[g]), -g))
            group = frozenset(self.r.groups[g])
            if self._memory(inside | group) <= room:
                waiting.append((inside | group, outside))
            waiting.append((inside, outside | group))
        return best

    def _memory(self, items: Iterable[int]) -> float:
        return float(self.r.memory[list(items)].sum())

    def _active(self, status: list[int], hull: BoolArray) -> tuple[list[int], list[int]]:
        """Return the items of O that the hull reaches through nets, and those outside it that its groups draw in."""
        r = self.r
        mates = []
        if len(r.groups) < r.n_items:
            drawn = np.zeros(len(r.groups), dtype=bool)
            drawn[r.group_of[hull]] = True
            mates = [v for v in np.flatnonzero(drawn[r.group_of]).tolist() if status[v] != 1]
        known = np.array(status)[self.flat]
        held = np.bincount(self.net, known == 1, len(self.pins)) > 0
        loose = np.bincount(self.net, known == 0, len(self.pins)) > 0
        queue = [v for e in np.flatnonzero(held & loose).tolist() for v in self.pins[e] if status[v] == 0]
        queue += mates
        seen = set(queue)
        queue = sorted(seen)
        while queue:
            v = queue.pop()
            others = {u for e in self.touching[v] for u in self.pins[e]} | set(r.groups[r.group_of[v]])
            for u in others:
                if status[u] == 0 and u not in seen:
                    seen.add(u)
                    queue.append(u)
        return sorted(seen), mates

    def _cut(
        self,
        i: int,
        j: int,
        t: int,
        status: list[int],
        active: list[int],
        inside: frozenset[int],
        outside: frozenset[int],
    ) -> tuple[float, frozenset[int]]:
        r = self.r
        node = {v: x for x, v in enumerate(active, start=2)}
        arcs: list[tuple[int, int, int]] = []

        def number(v: int) -> int:
            return 0 if status[v] == 1 else 1 if status[v] == 2 else node[v]

        for v, x in node.items():
            seconds = r.time[t, v]
            if v in outside or not np.isfinite(seconds):
                if v in inside:
                    return np.inf, frozenset()
                arcs.append((x, 1, _INFINITE))
            else:
                arcs.append((x, 1, self._units(seconds)))
                if v in inside:
                    arcs.append((0, x, _INFINITE))
            first = r.groups[r.group_of[v]][0]
            if first != v and first in node:
                arcs += [(x, node[first], _INFINITE), (node[first], x, _INFINITE)]
        count = len(node) + 2
        for e in sorted({e for v in active for e in self.touching[v]}):
            ends = sorted({number(v) for v in self.pins[e] if status[v] or v in node})
            if ends[:2] == [0, 1] or len(ends) < 2:
                continue  # paid for certain, and counted already; or never
            arcs.append((count, count + 1, self._units(r.nets[e][2])))
            arcs += [pair for x in ends for pair in ((x, count, _INFINITE), (count + 1, x, _INFINITE))]
            count += 2
        arcs += self._convex(i, j, node)
        found = minimum_cut(np.array(arcs).T, 0, 1) if arcs else None
        if found is None:
            return 0.0, frozenset()
        if found[0] >= _INFINITE // 2:
            return np.inf, frozenset()
        side = set(found[1].tolist())
        return found[0] / self.scale, frozenset(v for v, x in node.items() if x in side)

    def _convex(self, i: int, j: int, node: dict[int, int]) -> Iterator[tuple[int, int, int]]:
        before, after = self.r.neighbours
        lo, hi = self.chain.lo, self.chain.hi
        upstream = {v for v in node if hi[v] <= j and lo[v] < i}
        downstream = {v for v in node if lo[v] >= i and hi[v] > j}
        for side, beyond in ((upstream, after), (downstream, before)):
            for v in side:
                yield from ((node[v], node[w], _INFINITE) for w in beyond[v] if w in side)

    def _units(self, seconds: float) -> int:
        return int(min(seconds * self.scale, float(_UNITS)))
