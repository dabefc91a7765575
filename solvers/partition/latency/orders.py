"""Lines of items: linear extensions in which colocated items stand together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from .reduced import Reduced
from .segments import Line

_LONGEST = 2000
"""Positions of a line: memory and time grow with the square."""


@dataclass(frozen=True)
class Orders:
    """Makes lines from keys."""

    r: Reduced

    @cached_property
    def block(self) -> IntArray:
        """The block of each item, int32 (I,): a group, or the groups on a common cycle of them."""
        from networkx import DiGraph, strongly_connected_components  # slow to import

        r = self.r
        ends = {(int(r.group_of[a]), int(r.group_of[b])) for a, b in r.edges}
        graph = DiGraph(sorted((a, b) for a, b in ends if a != b))
        graph.add_nodes_from(range(len(r.groups)))
        block = np.empty(len(r.groups), dtype=np.int32)
        for i, members in enumerate(strongly_connected_components(graph)):
            block[list(members)] = i
        return np.asarray(block[r.group_of])

    @cached_property
    def neighbours(self) -> tuple[list[set[int]], list[set[int]]]:
        """The predecessors and the successors of each block."""
        count = int(self.block.max()) + 1
        before: list[set[int]] = [set() for _ in range(count)]
        after: list[set[int]] = [set() for _ in range(count)]
        for a, b in self.r.edges:
            x, y = int(self.block[a]), int(self.block[b])
            if x != y:
                before[y].add(x)
                after[x].add(y)
        return before, after

    def by_key(self, key: FloatArray) -> Line:
        """Return the line in which the item of the least key, (I,), of those whose inputs are there comes next."""
        before, after = self.neighbours
        keys = np.full(len(before), -np.inf)
        np.maximum.at(keys, self.block, key)
        left = [len(waits) for waits in before]
        queue = [(float(keys[b]), b) for b, count in enumerate(left) if not count]
        heapify(queue)
        place = np.empty(len(before), dtype=np.int32)
        done = 0
        while queue:
            _, b = heappop(queue)
            place[b] = done
            done += 1
            for c in after[b]:
                left[c] -= 1
                if not left[c]:
                    heappush(queue, (float(keys[c]), c))
        return self._line(place)

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

    def depth(self, weight: FloatArray) -> FloatArray:
        """Return the greatest total `weight` of a path up to and with each item, (I,)."""
        before, _ = self.r.neighbours
        total = weight.tolist()
        for v in range(self.r.n_items):
            total[v] += max((total[u] for u in before[v]), default=0.0)
        return np.array(total)

    def height(self, weight: FloatArray) -> FloatArray:
        """Return the greatest total `weight` of a path from each item on, (I,)."""
        _, after = self.r.neighbours
        total = weight.tolist()
        for v in reversed(range(self.r.n_items)):
            total[v] += max((total[u] for u in after[v]), default=0.0)
        return np.array(total)

    def candidates(self) -> Iterator[FloatArray]:
        """Yield keys worth trying, by count and by time: early, early but for inputs of the graph, late, between."""
        finite = np.where(np.isfinite(self.r.time), self.r.time, 0.0).max(axis=0)
        for weight in (np.ones(self.r.n_items), finite + 1e-3 * (finite.max() or 1.0)):
            depth, height = self.depth(weight), self.height(weight)
            yield depth
            yield self._inputs_late(depth)
            yield -height
            yield depth / (depth + height)

    def _inputs_late(self, depth: FloatArray) -> FloatArray:
        """Return `depth`, but for items that wait for nothing just less than that of the first that waits for them."""
        before, after = self.r.neighbours
        first = [min((depth[w] for w in after[v]), default=0.0) for v in range(self.r.n_items)]
        return np.where([bool(waits) for waits in before], depth, np.nextafter(first, -np.inf))
