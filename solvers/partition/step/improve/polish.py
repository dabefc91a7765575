"""Better times for a placement: all as late as it can be, then as early, and so on; never worse. Compiled.

Forward-backward improvement (Li, Willis, EJOR 1992), on one device an op.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .heap import first, pop, push
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
    device, order, key = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    back = np.empty(n, np.int64)
    for v in range(n):
        device[v], back[v] = where[a.group[v]], -a.topological[v]
    early, end, unknown = np.zeros(n), np.zeros(n), np.zeros(n)
    ranks(a, device, order, key)
    sort(key, a.topological, order)
    best = end_of(finish)
    length, _ = forward(a, device, order, unknown, np.inf, early, end, low, high, count)
    best = _keep(best, length, early, end, start, finish)
    for _ in range(rounds):
        before = best
        for v in range(n):
            key[v] = finish[v]
        # of ops that end at once a reader comes before what it reads
        sort(key, back, order)
        _backward(a, device, order, early, end, low, high, count)
        for v in range(n):
            key[v] = -early[v]
        sort(key, a.topological, order)
        length, _ = forward(a, device, order, unknown, np.inf, early, end, low, high, count)
        best = _keep(best, length, early, end, start, finish)
        if best >= before * (1 - 1e-9):
            break
    return best


@njit(cache=True)
def _keep(best: float, length: float, early: Any, end: Any, start: Any, finish: Any) -> float:
    """Take new times over if they are not worse, and return the makespan."""
    if length > best:
        return best
    for v in range(len(start)):
        start[v], finish[v] = early[v], end[v]
    return length


@njit(cache=True)
def end_of(finish: Any) -> float:
    """Return the latest of some times, at least 0."""
    latest = 0.0
    for x in finish:
        latest = max(latest, x)
    return latest


@njit(cache=True)
def sort(key: Any, place: Any, order: Any) -> None:
    """Write the ops by falling key, of equals the first in `place`."""
    size, heap = 0, np.empty(len(key), np.int64)
    for v in range(len(key)):
        size = push(heap, size, v, key, place)
    for i in range(len(key)):
        order[i] = heap[0]
        size = pop(heap, size, key, place)


@njit(cache=True)
def ranks(a: Any, device: Any, order: Any, rank: Any) -> None:
    """Write the longest way from the start of each op to the end; `order` is overwritten."""
    n = len(device)
    for v in range(n):
        order[a.topological[v]] = v
    for i in range(n - 1, -1, -1):
        v = order[i]
        d, most = device[v], 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            most = max(most, rank[w] + a.delay[a.level[d, device[w]], v])
        rank[v] = most + a.seconds[d, v]


@njit(cache=True)
def slide(key: Any, place: Any, order: Any) -> None:
    """Do what `sort` does with ops that are nearly in order: let each slide forward to where it belongs."""
    for i in range(1, len(order)):
        v, j = order[i], i
        while j > 0 and first(v, order[j - 1], key, place):
            order[j] = order[j - 1]
            j -= 1
        order[j] = v


@njit(cache=True)
def forward(
    a: Any, device: Any, order: Any, tail: Any, limit: float, start: Any, finish: Any, low: Any, high: Any, count: Any
) -> Any:
    """Write the earliest times of the ops in `order` and return the makespan, and how many ops were scheduled.

    With a time from the start of each op to the end, `tail`, it gives up as soon as the makespan would be `limit` or
    more, and returns infinity.
    """
    last, done = 0.0, 0
    for d in range(len(count)):
        count[d] = 0
    for v in order:
        d, ready = device[v], 0.0
        for i in range(a.before_first[v], a.before_first[v + 1]):
            u = a.before[i]
            ready = max(ready, finish[u] + a.delay[a.level[d, device[u]], u])
        took = a.seconds[d, v]
        at = first_gap(low[d], high[d], count[d], ready, took)
        done += 1
        if at + tail[v] >= limit:
            return np.inf, done
        start[v], finish[v] = at, at + took
        last = max(last, at + took)
        count[d] = occupy(low[d], high[d], count[d], at, at + took)
    return last, done


@njit(cache=True)
def _backward(a: Any, device: Any, order: Any, start: Any, finish: Any, low: Any, high: Any, count: Any) -> None:
    """Write the latest times of the ops in `order`, last first, counted from the end of all, which is 0."""
    for d in range(len(count)):
        count[d] = 0
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
