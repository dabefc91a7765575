"""Where every path of the graph passes one op, the step falls into segments that run one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import IntArray

from .model import Prepared


@dataclass(frozen=True)
class Segments:
    """A step cut at the ops that all others come before or after.

    Such a gate begins a segment; nothing of an earlier one still runs then, nothing of a later one has begun.

    Attributes:
        gates: the ops that begin a segment, in order. With ops before the first gate, segment 0 has none: then
            ``first`` is 1, else 0, and gate i begins segment ``first + i``.
        of: the segment of each op, int32 (n,).
        first: see `gates`.
    """

    gates: tuple[int, ...]
    of: IntArray
    first: int

    @property
    def count(self) -> int:
        """How many segments there are."""
        return len(self.gates) + self.first

    def gate(self, segment: int) -> int | None:
        """Return the op that begins a segment, if one does."""
        i = segment - self.first
        return self.gates[i] if 0 <= i < len(self.gates) else None

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The ops of each segment, ascending."""
        found: list[list[int]] = [[] for _ in range(self.count)]
        for v, j in enumerate(self.of.tolist()):
            found[j].append(v)
        return tuple(map(tuple, found))


def segments(p: Prepared) -> Segments:
    """Cut the step of `p` into segments.

    With contention a gate that an edge passes by is none: a transfer may still be under way then.
    """
    above, below = reach(p)
    order = p.order.tolist()
    related = [(above[v] | below[v]).bit_count() == p.n - 1 for v in range(p.n)]
    if p.contention:
        position = np.empty(p.n, dtype=np.int64)
        position[p.order] = np.arange(p.n)
        passed = np.zeros(p.n + 1, dtype=np.int64)
        u, v = p.edges
        np.add.at(passed, position[u] + 1, 1)
        np.add.at(passed, position[v], -1)
        over = np.cumsum(passed)
        related = [gate and not over[position[v]] for v, gate in enumerate(related)]
    gates = tuple(v for v in order if related[v])
    first = 0 if gates and not above[gates[0]] else 1
    of = np.zeros(p.n, dtype=np.int32)
    j = first - 1
    for v in order:
        j += related[v]
        of[v] = max(j, 0)
    return Segments(gates, of, first)


def reach(p: Prepared) -> tuple[list[int], list[int]]:
    """Return the ops before and the ops after each op as bit sets."""
    above, below = [0] * p.n, [0] * p.n
    order = p.order.tolist()
    for first, index, found, way in ((*p.predecessors, above, order), (*p.successors, below, order[::-1])):
        for v in way:
            for u in index[first[v] : first[v + 1]].tolist():
                found[v] |= found[u] | 1 << u
    return above, below


def longest_paths(p: Prepared, took: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the longest path before and after each op, the op left out, (n,) each; `took` (n,) is of the ops."""
    head, tail = [0] * p.n, [0] * p.n
    order, seconds = p.order.tolist(), took.tolist()
    for first, index, found, way in ((*p.predecessors, head, order), (*p.successors, tail, order[::-1])):
        for v in way:
            found[v] = max((found[u] + seconds[u] for u in index[first[v] : first[v + 1]].tolist()), default=0)
    return np.array(head, dtype=took.dtype), np.array(tail, dtype=took.dtype)
