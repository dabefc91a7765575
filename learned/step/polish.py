"""Better times for a placement: all as late as it can be, then as early, and so on; never worse. Compiled.

Forward-backward improvement (Li, Willis, EJOR 1992), on one device an op.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .timetable import first_gap, occupy


@njit(cache=True)
def polish(a: Any, where: Any, start: Any, finish: Any, rounds: int) -> float:
    """Overwrite the times with better ones and return the makespan.

    First the ops are scheduled by the upward ranks of this placement, if that is shorter. Then in each round, from the
    last to end on, each goes as late as its device and its readers let it, and, from the first to start on, as early.

    Args:
        a: the problem, `Arrays`.
        where: device of each group.
        start, finish: of each op, overwritten.
        rounds: at most; without progress it ends.
    """
    n, k = len(a.group), len(a.room)
    low, high, count = np.zeros((k, n)), np.zeros((k, n)), np.zeros(k, np.int64)
    device = where[a.group]
    best = finish.max()
    rank = _ranks(a, device)
    early, end = np.zeros(n), np.zeros(n)
    _forward(a, device, _sorted(-rank, a.topological), early, end, low, high, count)
    if end.max() < best:
        best = end.max()
        start[:], finish[:] = early, end
    for _ in range(rounds):
        _backward(a, device, _sorted(finish, a.topological)[::-1], early, end, low, high, count)
        _forward(a, device, _sorted(early, a.topological), early, end, low, high, count)
        length = end.max()
        better = length < best * (1 - 1e-9)
        if length <= best:
            best = length
            start[:], finish[:] = early, end
        if not better:
            break
    return best


@njit(cache=True)
def _sorted(key: Any, place: Any) -> Any:
    """Return the ops by key, of equals the first in `place`, so that edges point forward if keys do."""
    by_place = np.argsort(place)
    return by_place[np.argsort(key[by_place], kind="mergesort")]


@njit(cache=True)
def _ranks(a: Any, device: Any) -> Any:
    n = len(device)
    rank = np.zeros(n)
    for v in np.argsort(a.topological)[::-1]:
        d, most = device[v], 0.0
        for i in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[i]
            most = max(most, rank[w] + a.delay[a.level[d, device[w]], v])
        rank[v] = most + a.seconds[d, v]
    return rank


@njit(cache=True)
def _forward(a: Any, device: Any, order: Any, start: Any, finish: Any, low: Any, high: Any, count: Any) -> None:
    count[:] = 0
    for v in order:
        d, ready = device[v], 0.0
        for i in range(a.before_first[v], a.before_first[v + 1]):
            u = a.before[i]
            ready = max(ready, finish[u] + a.delay[a.level[d, device[u]], u])
        took = a.seconds[d, v]
        at = first_gap(low[d], high[d], count[d], ready, took)
        start[v], finish[v] = at, at + took
        count[d] = occupy(low[d], high[d], count[d], at, at + took)


@njit(cache=True)
def _backward(a: Any, device: Any, order: Any, start: Any, finish: Any, low: Any, high: Any, count: Any) -> None:
    """Write the latest times, counted from the end of all, which is 0, so that they are negative."""
    count[:] = 0
    for v in order:
        d, ready = device[v], 0.0
        for i in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[i]
            # mirrored: minus the start of what reads it
            ready = max(ready, -start[w] + a.delay[a.level[d, device[w]], v])
        took = a.seconds[d, v]
        at = first_gap(low[d], high[d], count[d], ready, took)
        start[v], finish[v] = -at - took, -at
        count[d] = occupy(low[d], high[d], count[d], at, at + took)
