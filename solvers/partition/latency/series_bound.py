"""A bound where no op runs on a host: a graph in series is done by few calls, and each step aside takes one more.

An item is a *waist* of a set of items if it is before or after each of the others. Between two waists are *blocks*.
With at most k calls let F(k) be what the longest chain of calls takes at least, w the seconds of the set. The items of
a set alone are a plan too, with the calls cut down to them, whose chains take no longer.

- *Waists.* A call is convex: it has what is between two of its items, for it does not wait for itself. So calls with
  waists hold intervals of them with all blocks inside, one after the other, and any other call is inside one block. If
  the two waists beside a block are in two calls, these take a seconds of the block, m calls take the others between
  them, one chain of which takes (w - a) / m at least (m >= 1); all together are m + 2 calls on the block. So it costs
  max(w / m, F(m + 2)) and 1 + m calls more, or w and one more. Before the first waist or after the last one there is
  one such call less. F(k) is the least sum over all ways to spend k calls, a shortest path over waists, in which no
  call holds more than the memory of a device.
- *Parts without waists.* Of several components each has F(k); together k calls take w / k. The calls on a component
  are connected: if there are two or more some two of them are one after the other, so k - 1 chains have all of them
  (Dilworth 1950) and one chain takes w / (k - 1).

Transfers: the two calls beside a block that is split pay the nets whose producers are in it or its first waist and that
a cut between the waists crosses, each at least the least cut. A call inside pays for one more net to come in and one to
go out. What a block's own F counts may be the same nets: the greater sum of the two holds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.graph import connected
from gangplan.instances.verify import TOLERANCE

from ...run import Run, never
from ..sizes import most
from .reduced import ReducedLatency

_DEPTH = 200
"""Blocks inside blocks; deeper ones are counted as if anything could be beside anything."""
_UNITS = 1 << 40
_INFINITE = 1 << 52


class _Floor(NamedTuple):
    """What k calls take at least on some items, for k from 0, without transfers and with them, (K + 1,) each."""

    work: FloatArray
    all: FloatArray


def series_bound(run: Run, r: ReducedLatency) -> None:
    """Raise the bound by waists and blocks, if no item can be on a host."""
    hosts = [s for s, slot in enumerate(r.slots) if slot.host]
    if r.callers and not r.fits[:, hosts].any() and len(r.groups) == r.n_items:
        value = SeriesBound(r, lambda: run.stopped).value()
        if np.isfinite(value):
            run.raise_bound(value * (1 - TOLERANCE), "series")


class SeriesBound:
    """The recursion over blocks."""

    def __init__(self, r: ReducedLatency, stopped: Callable[[], bool] = never) -> None:
        self.r, self.stopped = r, stopped
        self.time = r.time[[*r.by_type]].min(axis=0)
        self.room = max(most(r.slots[s].capacity, len(r.item_of)) for s in r.callers)
        self.most = min(len(r.callers), r.n_items)
        self.before, self.after = r.neighbours
        self.nets: list[list[int]] = [[] for _ in range(r.n_items)]
        covered: list[set[int]] = [set() for _ in range(r.n_items)]
        self.least = np.full(r.n_items, np.inf)  # what an output costs at least, wherever it goes
        for e, (a, consumers, cost) in enumerate(r.nets):
            self.nets[a].append(e)
            covered[a] |= consumers
            self.least[a] = min(self.least[a], cost)
        for v, after in enumerate(self.after):
            if len(covered[v]) < len(set(after)):
                self.least[v] = 0.0

    def value(self) -> float:
        """Return the least latency that this allows, infinity if memory is too small."""
        return float(self._floor(list(range(self.r.n_items)), 0).all[-1])

    def _floor(self, items: list[int], depth: int) -> _Floor:
        """Return F of items, in topological order."""
        work, calls = float(self.time[items].sum()), np.arange(self.most + 1)
        with np.errstate(divide="ignore"):
            share = np.maximum(work / calls, self._longest(items)) if work else np.where(calls > 0, 0.0, np.inf)
        if len(items) == 1 or depth > _DEPTH or self.stopped():
            return self._held(items, share, share)
        waists = self._waists(items)
        if waists:
            return self._series(items, waists, depth)
        parts = self._components(items)
        if len(parts) > 1:
            floors = [self._floor(part, depth + 1) for part in parts]
            found = [np.maximum.reduce([share, *rows]) for rows in zip(*floors, strict=True)]
            return self._held(items, found[0], found[1])
        # two calls or more are connected
        apart = np.concatenate([[np.inf, np.inf], share[1:-1]])
        going = [v for v in items if any(items[0] <= w <= items[-1] for w in self.after[v])]
        least = float(self.least[going].min(initial=np.inf))
        return self._held(items, *(np.minimum(np.where(calls > 0, work, np.inf), apart + x) for x in (0.0, least)))

    def _held(self, items: list[int], work: FloatArray, both: FloatArray) -> _Floor:
        """Rule out numbers of calls that have too little memory."""
        short = np.arange(self.most + 1) < float(self.r.memory[items].sum()) / self.room
        return _Floor(np.where(short, np.inf, work), np.where(short, np.inf, both))

    def _longest(self, items: list[int]) -> float:
        reach: dict[int, float] = {}
        for v in items:
            reach[v] = float(self.time[v]) + max((reach[u] for u in self.before[v] if u in reach), default=0.0)
        return max(reach.values())

    def _waists(self, items: list[int]) -> list[int]:
        """Return the places of waists: all before them lead to them, and they to all behind."""
        place, n = {v: i for i, v in enumerate(items)}, len(items)
        ends, starts = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
        for i, v in enumerate(items):
            # v is an end of the beginnings up to its first successor, a start of what is left from its last predecessor
            ends[i] += 1
            ends[min((place[w] for w in self.after[v] if w in place), default=n)] -= 1
            starts[1 + max((place[u] for u in self.before[v] if u in place), default=-1)] += 1
            starts[i + 1] -= 1
        one: BoolArray = (np.cumsum(ends)[:n] == 1) & (np.cumsum(starts)[:n] == 1)
        return [int(i) for i in np.flatnonzero(one)]

    def _components(self, items: list[int]) -> list[list[int]]:
        place = {v: i for i, v in enumerate(items)}
        edges = ((i, place[w]) for v, i in place.items() for w in self.after[v] if w in place)
        return [[items[i] for i in part] for part in connected(len(items), edges)]

    def _series(self, items: list[int], waists: list[int], depth: int) -> _Floor:
        """Return F of waists with blocks between them, some perhaps empty, and before and behind them."""
        ends = [-1, *waists, len(items)]
        blocks = [items[a + 1 : b] for a, b in pairwise(ends)]
        whole = np.array([self.time[block].sum() for block in blocks])
        memory = np.array([self.r.memory[block].sum() for block in blocks])
        at = [items[i] for i in waists]
        before, behind = [None, *at], [*at, None]
        tight = float(self.r.memory[items].sum()) > self.room
        split = [self._split(*x, depth, tight) for x in zip(blocks, before, behind, strict=True)]
        found = []
        for which in range(2):
            paths = _WaistPath(self.time[at], self.r.memory[at], whole, memory, [x[which] for x in split], self.most)
            found.append(paths.tight(self.room) if tight else paths.ample())
        return self._held(items, found[0], found[1])

    def _split(self, block: list[int], first: int | None, last: int | None, depth: int, tight: bool) -> _Floor:
        """Return what a block costs if the calls beside it are two, by the calls it takes besides the first of them.

        Where memory is not tight nobody splits it to no avail.
        """
        inner = first is not None and last is not None
        work, own = float(self.time[block].sum()), int(inner)
        costs = np.full((2, self.most + 1), np.inf)
        if not block and not tight:
            return _Floor(costs[0], costs[1])
        floor = self._floor(block, depth + 1) if block else None
        calls = np.arange(1, self.most + 1 - own)
        alone = np.zeros(0)
        if floor is not None:
            inside = np.minimum(calls + 1 + own, self.most)
            alone = np.maximum(work / calls, floor.work[inside])
            if not tight and (alone >= work).all():
                return _Floor(costs[0], costs[1])
        cut = self._cut([first, *block], last) if first is not None and last is not None else 0.0
        costs[:, own] = work, work + 2 * cut
        if floor is not None:
            leave = float(self.least[block].min())
            enter = leave if first is None else min(leave, float(self.least[first]))
            # of the calls beside it one or two pay, and one inside
            paid = 2 * cut + enter + leave if inner else 2 * enter
            costs[:, own + 1 :] = alone, np.maximum(alone + paid, floor.all[inside])
        return _Floor(costs[0], costs[1])

    def _cut(self, block: list[int], last: int) -> float:
        """Return the least cost of nets, of those that begin in a block, that part its first item from `last`."""
        node = {v: i for i, v in enumerate([block[0], last, *block[1:]])}
        nets = [e for v in block for e in self.nets[v]]
        total = sum(self.r.nets[e][2] for e in nets)
        if not total:
            return 0.0
        from ...flows import minimum_cut

        scale, arcs = _UNITS / total, list[tuple[int, int, int]]()
        for at, e in enumerate(nets):
            (a, consumers, cost), net = self.r.nets[e], len(node) + 2 * at
            arcs.append((net, net + 1, int(cost * scale)))
            for x in [node[v] for v in (a, *consumers) if v in node]:
                arcs += [(x, net, _INFINITE), (net + 1, x, _INFINITE)]
        found = minimum_cut(np.array(arcs).T, 0, 1, sides=False)
        return found[0] / scale if found is not None else 0.0


class _WaistPath(NamedTuple):
    """Waists in their order, and what comes of calls that hold some of them.

    Attributes:
        time, held: seconds and bytes of each waist, float64 (n,).
        whole, memory: of each block, of which the first is before the first waist, float64 (n + 1,).
        split: what each costs if the calls beside it are two, by the calls that it takes, n + 1 of float64 (K + 1,).
        most: K.
    """

    time: FloatArray
    held: FloatArray
    whole: FloatArray
    memory: FloatArray
    split: list[FloatArray]
    most: int

    def ample(self) -> FloatArray:
        """Return the least sum by the calls spent, where memory is no matter, float64 (K + 1,)."""
        best = np.full(self.most + 1, np.inf)
        best[1:] = self.time.sum()
        for whole, split in zip(self.whole.tolist(), self.split, strict=True):
            best = _spent(best, split, whole)
        return np.minimum.accumulate(best)

    def tight(self, room: float) -> FloatArray:
        """Return it where a call that holds waists has the memory for all between them."""
        start = np.full(self.most + 1, np.inf)
        start[1:] = 0.0
        upto = np.concatenate([[0.0], np.cumsum(self.time + self.whole[1:])])
        bytes_upto = np.concatenate([[0.0], np.cumsum(self.held + self.memory[1:])])
        # begun[i]: the least of what was before the call whose first waist is i, by the calls so far
        begun = np.full((len(self.time), self.most + 1), np.inf)
        begun[0] = _spent(start, self.split[0], float(self.whole[0]))
        done = begun[0]
        first = 0
        for j in range(len(self.time)):
            while bytes_upto[j] + self.held[j] - bytes_upto[first] > room * (1 + 1e-9) and first < j:
                first += 1
            inside = upto[j] + self.time[j] - upto[first : j + 1]
            done = (begun[first : j + 1] + inside[:, None]).min(axis=0)
            if j + 1 < len(self.time):
                begun[j + 1] = _spent(done, self.split[j + 1], np.inf)
        return np.minimum.accumulate(_spent(done, self.split[-1], float(self.whole[-1])))


def _spent(best: FloatArray, split: FloatArray, whole: float) -> FloatArray:
    """Return the least by calls spent if a block is whole or split."""
    found = best + whole
    useful = split < np.minimum.accumulate(np.concatenate([[whole], split[:-1]]))
    for calls in np.flatnonzero(useful).tolist():
        found[calls:] = np.minimum(found[calls:], best[: len(best) - calls] + split[calls])
    return found
