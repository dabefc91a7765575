"""The best sequence of calls and host segments along a line of items, by dynamic programming, for some lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.graph import heaviest_paths, strong_components, topological_order
from gangplan.instances.verify import TOLERANCE

from ...run import Run
from .. import both_ways
from .reduced import ReducedLatency, host_slots, offer


@dataclass(frozen=True)
class Line:
    """Items at positions 0 to L - 1, int32 (I,), such that no edge points back; those of a group share a position."""

    r: ReducedLatency
    place: IntArray

    @cached_property
    def length(self) -> int:
        """L."""
        return int(self.place.max()) + 1

    def coarse(self, most: int) -> Line:
        """Return this line with neighbouring positions merged until there are at most so many."""
        return Line(self.r, (self.place // -(-self.length // most)).astype(np.int32))

    @cached_property
    def calls(self) -> dict[int, FloatArray]:
        """Seconds of positions i to j - 1 as a call, infinite where it does not fit, (L+1, L+1) for each type."""
        found: dict[int, FloatArray] = {}
        r = self.r
        for t, slots in r.by_type.items():
            runs = np.isfinite(r.time[t])
            barred = self._between((~runs).astype(float))
            memory = self._between(r.memory)
            seconds = self._between(np.where(runs, r.time[t], 0.0)) + self.transfers
            seconds[(barred > 0.5) | (memory > r.slots[slots[0]].capacity * (1 + TOLERANCE / 2))] = np.inf
            found[t] = seconds
        return found

    @cached_property
    def hosts(self) -> FloatArray:
        """Seconds of positions i to j - 1 on hosts that hold everything: the longest path, (L+1, L+1)."""
        r, size = self.r, self.length + 1
        seconds = np.full((size, size), np.inf)
        before, _ = r.neighbours
        # row v: the longest path that ends in item v, by the position i where the segment starts
        paths: list[FloatArray] = []
        ends = np.zeros((size, size))
        for v, p in enumerate(self.place.tolist()):
            path = np.zeros(p + 1)
            for u in before[v]:
                q = int(self.place[u]) + 1
                np.maximum(path[:q], paths[u], out=path[:q])
            path = path + r.pool_time[v]
            paths.append(path)
            np.maximum(ends[: p + 1, p + 1], path, out=ends[: p + 1, p + 1])
        seconds = np.maximum.accumulate(ends, axis=1)
        seconds[np.tril_indices(size, -1)] = np.inf
        return seconds

    @cached_property
    def transfers(self) -> FloatArray:
        """Seconds a call on positions i to j - 1 spends on transfers, (L+1, L+1)."""
        size = self.length + 1
        # a net is paid unless the segment has none of its pins or all: differences of rectangles [i, i') x [j, j')
        corner = np.zeros((size + 1, size + 1))
        total = 0.0

        def free(i: int, i_end: int, j: int, j_end: int, cost: float) -> None:
            corner[i, j] += cost
            corner[i_end, j] -= cost
            corner[i, j_end] -= cost
            corner[i_end, j_end] += cost

        for a, consumers, cost in self.r.nets:
            pins = sorted({int(self.place[a]), *self.place[list(consumers)].tolist()})
            total += cost
            gaps = zip([-1, *pins], [*pins, size - 1], strict=True)
            for low, high in gaps:
                free(low + 1, high + 1, 0, high + 1, cost)
            if pins:
                free(0, pins[0] + 1, pins[-1] + 1, size, cost)
        exempt = corner.cumsum(axis=0).cumsum(axis=1)[:size, :size]
        return np.maximum(total - exempt, 0.0)

    def _between(self, amount: FloatArray) -> FloatArray:
        each = np.zeros(self.length)
        np.add.at(each, self.place, amount)
        upto = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(upto[None, :] - upto[:, None])


_LONGEST = 2000
"""Positions of a line: memory and time grow with the square."""


@dataclass(frozen=True)
class Orders:
    """Makes lines from keys."""

    r: ReducedLatency

    @cached_property
    def block(self) -> IntArray:
        """The block of each item, int32 (I,): a group, or the groups on a common cycle of them."""
        r, count = self.r, len(self.r.groups)
        edges = r.group_of[np.array(r.edges, dtype=np.int32).reshape(-1, 2)].tolist()
        ends = sorted({(a, b) for a, b in edges if a != b})
        number = np.empty(count, dtype=np.int64)  # of each group, in the order in which edges name them
        number[[*dict.fromkeys(chain(*ends, range(count)))]] = np.arange(count)
        source, target = number[np.array(ends[::-1], dtype=np.int64).reshape(-1, 2)].T
        return np.asarray(strong_components(source, target, count)[number][r.group_of], dtype=np.int32)

    @cached_property
    def neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The predecessors and the successors of each block."""
        block = self.block.tolist()
        ends = {(block[a], block[b]) for a, b in self.r.edges}
        return both_ways(((x, y) for x, y in ends if x != y), max(block) + 1)

    def by_key(self, key: FloatArray) -> Line:
        """Return the line in which the item of the least key, (I,), of those whose inputs are there comes next."""
        keys = np.full(len(self.neighbours[0]), -np.inf)
        np.maximum.at(keys, self.block, key)
        number = np.argsort(np.argsort(keys, kind="stable"))
        ends = number[[(a, b) for a, after in enumerate(self.neighbours[1]) for b in after]].reshape(-1, 2)
        order = topological_order(len(keys), *ends.astype(np.int32).T)
        return self._line(np.argsort(order)[number].astype(np.int32))

    def depth_first(self) -> Line:
        """Return the line that goes down a branch before it turns to the next."""
        before, after = self.neighbours
        first = np.full(len(before), self.r.n_items)
        np.minimum.at(first, self.block, np.arange(self.r.n_items))
        place = np.full(len(before), -1, dtype=np.int32)
        done = 0
        for sink in sorted((b for b in range(len(before)) if not after[b]), key=lambda b: int(first[b])):
            stack = [(sink, False)]
            while stack:
                b, ready = stack.pop()
                if place[b] >= 0:
                    continue
                if ready:
                    place[b] = done
                    done += 1
                    continue
                stack.append((b, True))
                stack += [(a, False) for a in sorted(before[b], key=lambda a: -int(first[a])) if place[a] < 0]
        return self._line(place)

    def _line(self, place: IntArray) -> Line:
        line = Line(self.r, np.asarray(place[self.block]))
        return line if line.length <= _LONGEST else line.coarse(_LONGEST)

    def candidates(self) -> Iterator[FloatArray]:
        """Yield keys worth trying, by count and by time: early, early but for inputs of the graph, late, between."""
        finite = np.where(np.isfinite(self.r.time), self.r.time, 0.0).max(axis=0)
        items, (before, after) = range(self.r.n_items), self.r.neighbours
        for weight in (np.ones(self.r.n_items), finite + 1e-3 * (finite.max() or 1.0)):
            # of a path up to and with each item, and from it on
            depth = np.array(heaviest_paths(items, before, weight.tolist())[0])
            height = np.array(heaviest_paths(reversed(items), after, weight.tolist())[0])
            yield depth
            # what waits for nothing just before the first that waits for it
            first = [min((depth[w] for w in after[v]), default=0.0) for v in range(self.r.n_items)]
            yield np.where([bool(waits) for waits in before], depth, np.nextafter(first, -np.inf))
            yield -height
            yield depth / (depth + height)


_STATES = 128
"""Mixes of devices in use that the recurrence tells apart."""


def sequence(line: Line, stopped: Callable[[], bool]) -> list[int] | None:
    """Return the slot of each group in the best sequence along `line`, `None` if there is none or no time.

    With f(c, j) the least time in which calls on c[t] accelerators of each type, one after the other, and host
    segments between them do positions 0 to j - 1:

        f(c, j) = min(min over i < j of f(c, i) + hosts(i, j), min over i < j and t of f(c - 1[t], i) + calls(t, i, j))

    Calls of the plan may overlap in time where the graph allows, so it is no worse than that.
    """
    r = line.r
    types = sorted(line.calls)
    counts = _counts(r, types, line.length)
    size = line.length + 1
    best: dict[tuple[int, ...], FloatArray] = {}
    steps: dict[tuple[int, ...], tuple[IntArray, IntArray]] = {}
    hosts, calls = line.hosts, line.calls
    for c in product(*(range(n + 1) for n in counts)):
        if stopped():
            return None
        f = np.full(size, np.inf)
        chosen, start = np.full(size, -2, dtype=np.int32), np.zeros(size, dtype=np.int32)
        f[0] = 0.0
        for k, t in enumerate(types):
            if c[k] == 0:
                continue
            fewer = best[(*c[:k], c[k] - 1, *c[k + 1 :])]
            through = fewer[:, None] + calls[t]
            i = through.argmin(axis=0)
            value = through[i, np.arange(size)]
            better = value < f
            f[better], chosen[better], start[better] = value[better], k, i[better]
        if r.pools:
            for j in range(1, size):
                onto = f[:j] + hosts[:j, j]
                i_host = int(onto.argmin())
                if onto[i_host] < f[j]:
                    f[j], chosen[j], start[j] = onto[i_host], -1, i_host
        best[c], steps[c] = f, (chosen, start)
    last = min(best, key=lambda c: (float(best[c][-1]), c))
    if not np.isfinite(best[last][-1]):
        return None
    return _traced(line, types, steps, last)


def _counts(r: ReducedLatency, types: list[int], length: int) -> list[int]:
    counts = [min(length, len(r.by_type[t])) for t in types]
    while np.prod([n + 1 for n in counts]) > _STATES and max(counts, default=0) > 1:
        counts[int(np.argmax(counts))] -= 1
    return counts


def _traced(
    line: Line, types: list[int], steps: dict[tuple[int, ...], tuple[IntArray, IntArray]], c: tuple[int, ...]
) -> list[int]:
    r = line.r
    of_group = [int(line.place[items[0]]) for items in r.groups]
    parts: list[tuple[int, int, int]] = []
    j = line.length
    while j > 0:
        chosen, start = steps[c]
        k, i = int(chosen[j]), int(start[j])
        parts.append((k, i, j))
        if k >= 0:
            c = (*c[:k], c[k] - 1, *c[k + 1 :])
        j = i
    free = {t: list(slots) for t, slots in r.by_type.items()}
    owner = np.zeros(line.length, dtype=np.int64)
    for k, i, j in reversed(parts):
        owner[i:j] = -1 if k < 0 else free[types[k]].pop(0)
    pool = host_slots(r)
    return [pool[g] if owner[p] < 0 else int(owner[p]) for g, p in enumerate(of_group)]


_COARSE = 300
"""Positions of a line that a plan is quickly found for."""


def greedy(run: Run, r: ReducedLatency) -> None:
    """Offer everything on hosts and the best sequence of calls along nine lines; see `sequence`."""
    home = host_slots(r)
    if not run.stopped and all(s >= 0 for s in home):
        offer(run, r, home, "hosts")
    for line in _lines(Orders(r)):
        if run.stopped:
            return
        slots = sequence(line, lambda: run.stopped)
        if slots is not None and not run.stopped:
            offer(run, r, slots, "greedy")


def _lines(orders: Orders) -> Iterator[Line]:
    first = orders.depth_first()
    if first.length > _COARSE:
        yield first.coarse(_COARSE)
    yield first
    for key in orders.candidates():
        yield orders.by_key(key)
