"""All segments of a line of items at once: what each takes as one call and on hosts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.verify import TOLERANCE

from .reduced import Reduced


@dataclass(frozen=True)
class Line:
    """Items at positions 0 to L - 1 such that no edge points back; those of a group share a position.

    Attributes:
        r: the problem.
        place: int32 (I,), the position of each item.
    """

    r: Reduced
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
        for s in r.callers:
            t = r.slots[s].kind
            if t in found:
                continue
            runs = np.isfinite(r.time[t])
            barred = self._between((~runs).astype(float))
            memory = self._between(r.memory)
            seconds = self._between(np.where(runs, r.time[t], 0.0)) + self.transfers
            seconds[(barred > 0.5) | (memory > r.slots[s].capacity * (1 + TOLERANCE / 2))] = np.inf
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
        """Return the sum of `amount` over positions i to j - 1, (L+1, L+1)."""
        each = np.zeros(self.length)
        np.add.at(each, self.place, amount)
        upto = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(upto[None, :] - upto[:, None])
