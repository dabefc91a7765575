"""Where every path of the graph passes one op, the step falls into segments that run one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import IntArray
from gangplan.instances.graph import grouped

from .bounds import earliest
from .model import Csr, Prepared, csr


@dataclass(frozen=True)
class Segments:
    """A step cut at the ops that all others come before or after.

    Such a gate begins a segment; nothing of an earlier one still runs then, nothing of a later one has begun.

    Attributes:
        gates: the ops that begin a segment, in order. With ops before the first gate, segment 0 has none: then
            ``first`` is 1, else 0, and gate i begins segment ``first + i``.
        of: the segment of each op, int32 (n,).
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
        return tuple(map(tuple, grouped(((j, v) for v, j in enumerate(self.of.tolist())), self.count)))


def segments(p: Prepared) -> Segments:
    """Cut the step of `p` into segments; with contention not where an edge passes by: its transfer may be under way."""
    above, below = p.reach
    order = p.order.tolist()
    related = [(above[v] | below[v]).bit_count() == p.n - 1 for v in range(p.n)]
    if p.contention:
        passed = np.zeros(p.n + 1, dtype=np.int64)
        u, v = p.edges
        np.add.at(passed, p.rank[u] + 1, 1)
        np.add.at(passed, p.rank[v], -1)
        over = np.cumsum(passed)[p.rank]
        related = [gate and not over[v] for v, gate in enumerate(related)]
    gates = tuple(v for v in order if related[v])
    first = 0 if gates and not above[gates[0]] else 1
    of = np.zeros(p.n, dtype=np.int32)
    j = first - 1
    for v in order:
        j += related[v]
        of[v] = max(j, 0)
    return Segments(gates, of, first)


Ticks = NDArray[np.int64]


def local_windows(p: Prepared, cut: Segments) -> tuple[Ticks, Ticks, list[int]]:
    """Return the least ticks from the begin of its segment to each op, from the op to the segment's end, and of all.

    Inputs from earlier segments are left out, so the times are least ones whatever happens there. The op itself is
    left out; int64 (n,) each, and of each segment. The times of `p` are in ticks.
    """
    head, tail = np.zeros(p.n, dtype=np.int64), np.zeros(p.n, dtype=np.int64)
    shortest = []
    sent = p.least_delay.tolist()
    for j, members in enumerate(cut.members):
        end = cut.gate(j + 1)
        ops = sorted(members, key=p.rank.__getitem__) + ([] if end is None else [end])
        took = p.fastest[ops]
        if end is not None:
            took[-1] = 0.0
        before, after = _inside(p, ops)
        delay = [sent[v] for v in ops]
        order = list(range(len(ops)))
        starts = earliest(order, before, took, lambda u, v, delay=delay: delay[u])  # type: ignore[misc]
        ends = earliest(order[::-1], after, took, lambda u, v, delay=delay: delay[v])  # type: ignore[misc]
        heads, tails = np.array([starts, ends]).astype(np.int64)
        shortest.append(int((heads + took + tails).max(initial=0)))
        own = ops if end is None else ops[:-1]
        head[own], tail[own] = heads[: len(own)], tails[: len(own)]
    return head, tail, shortest


def _inside(p: Prepared, ops: list[int]) -> tuple[Csr, Csr]:
    place = {v: i for i, v in enumerate(ops)}
    before, after = (
        csr([[place[u] for u in index[first[v] : first[v + 1]].tolist() if u in place] for v in ops])
        for first, index in (p.predecessors, p.successors)
    )
    return before, after
