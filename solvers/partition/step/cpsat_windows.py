"""When ops can start at the earliest and must end at the latest within their segment, delays considered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cpsat_segments import Segments
from .delays import earliest
from .model import Csr, Prepared

Ticks = NDArray[np.int64]


def local_windows(p: Prepared, cut: Segments) -> tuple[Ticks, Ticks, list[int]]:
    """Return the least time from the begin of its segment to each op, from the op to the segment's end, and of all.

    Inputs from earlier segments are left out, so the times are least ones whatever happens there.

    Args:
        p: the problem, its times in ticks.
        cut: its segments.

    Returns:
        Ticks before and after each op, the op left out, int64 (n,) each; and of each segment.
    """
    head, tail = np.zeros(p.n, dtype=np.int64), np.zeros(p.n, dtype=np.int64)
    shortest = []
    position = np.empty(p.n, dtype=np.int64)
    position[p.order] = np.arange(p.n)
    sent = p.least_delay.tolist()
    for j, members in enumerate(cut.members):
        end = cut.gate(j + 1)
        ops = sorted(members, key=position.__getitem__) + ([] if end is None else [end])
        took = p.fastest[ops]
        if end is not None:
            took[-1] = 0.0
        before, after = _inside(p, ops)
        delay = [sent[v] for v in ops]
        order = list(range(len(ops)))
        heads = _rounded(earliest(order, before, took, lambda u, v, delay=delay: delay[u]))  # type: ignore[misc]
        tails = _rounded(earliest(order[::-1], after, took, lambda u, v, delay=delay: delay[v]))  # type: ignore[misc]
        shortest.append(int((heads + took + tails).max(initial=0)))
        own = ops if end is None else ops[:-1]
        head[own], tail[own] = heads[: len(own)], tails[: len(own)]
    return head, tail, shortest


def _rounded(ticks: list[float]) -> Ticks:
    return np.array([int(t) for t in ticks], dtype=np.int64)


def _inside(p: Prepared, ops: list[int]) -> tuple[Csr, Csr]:
    """Return the predecessors and successors among `ops`, by place in it."""
    place = {v: i for i, v in enumerate(ops)}
    found = []
    for first, index in (p.predecessors, p.successors):
        rows = [[place[u] for u in index[first[v] : first[v + 1]].tolist() if u in place] for v in ops]
        starts = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        found.append((starts, np.array([u for row in rows for u in row], dtype=np.int32)))
    return found[0], found[1]
