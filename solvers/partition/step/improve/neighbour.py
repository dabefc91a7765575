"""What a search looks at around a plan: which ops hold up its end, and how long another plan would be; compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray, IntArray

from .polish import forward, slide


class Workroom(NamedTuple):
    """Where a neighbour is made; n ops, k devices.

    Attributes:
        device: of each op, int64 (n,).
        order: in which ops are scheduled, int64 (n,); nearly that of the neighbour before.
        topological: ops in a topological order, int64 (n,).
        tail: longest way from the start of each op to the end, float64 (n,).
        start, finish: of each op, float64 (n,).
        low, high, busy: see `timetable`.
    """

    device: IntArray
    order: IntArray
    topological: IntArray
    tail: FloatArray
    start: FloatArray
    finish: FloatArray
    low: FloatArray
    high: FloatArray
    busy: IntArray


@njit(cache=True)
def workroom(a: Any) -> Any:
    """Return an empty workroom for a problem, `Arrays`."""
    n, k = len(a.group), len(a.room)
    order: Any = np.argsort(a.topological)
    return Workroom(
        np.empty(n, np.int64), order, order.copy(), np.zeros(n), np.zeros(n), np.zeros(n),
        np.zeros((k, n)), np.zeros((k, n)), np.zeros(k, np.int64),
    )  # fmt: skip


@njit(cache=True)
def time_if(a: Any, room: Any, limit: float) -> Any:
    """Schedule ops by falling tails; return the makespan, infinite from `limit` on, and how many were scheduled."""
    slide(room.tail, a.topological, room.order)
    return forward(
        a, room.device, room.order, room.tail, limit, room.start, room.finish, room.low, room.high, room.busy
    )


@njit(cache=True)
def critical(a: Any, where: Any, start: Any, finish: Any, length: float) -> Any:
    """Return the ops on the ways to the end on which nothing waits for anything else, from the last on, int64."""
    n, slack = len(start), 1e-9 * length
    order = np.argsort(start)
    behind, last = np.full(n, -1), np.full(len(a.room), -1)
    for v in order:
        # what the device did just before
        d = where[a.group[v]]
        behind[v] = last[d]
        if last[d] < 0 or finish[v] >= finish[last[d]]:
            last[d] = v
    found, seen, size = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
    for v in order[::-1]:
        if finish[v] >= length - slack:
            found[size], seen[v] = v, True
            size += 1
    head = 0
    while head < size:
        v = found[head]
        head += 1
        d, u = where[a.group[v]], behind[v]
        if u >= 0 and not seen[u] and finish[u] >= start[v] - slack:
            found[size], seen[u] = u, True
            size += 1
        for i in range(a.before_first[v], a.before_first[v + 1]):
            u = a.before[i]
            if not seen[u] and finish[u] + a.delay[a.level[d, where[a.group[u]]], u] >= start[v] - slack:
                found[size], seen[u] = u, True
                size += 1
    return found[:size]
