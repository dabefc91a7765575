"""Better devices for a placement: groups that hold up the end move, or change places, as long as that helps. Compiled.

Descent by critical moves (Nowicki, Smutnicki, 1996, for shops), the first that helps; each neighbour is scheduled anew
by the upward ranks of its placement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .polish import forward, ranks, sort

_LESS = 1 - 1e-9


@njit(cache=True)
def descend(a: Any, where: Any, start: Any, finish: Any, budget: int) -> float:
    """Overwrite devices and times with better ones and return the makespan.

    Args:
        a: the problem, `Arrays`.
        where: device of each group, overwritten.
        start, finish: of each op, overwritten.
        budget: ops that may be scheduled in all; without progress it ends before.
    """
    n, k = len(a.group), len(a.room)
    room = (
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.zeros(n), np.zeros(n),
        np.zeros((k, n)), np.zeros((k, n)), np.zeros(k, np.int64),
    )  # fmt: skip
    left, used = a.room.copy(), np.zeros(k, np.int64)
    for g in range(len(where)):
        _hold(a, left, used, g, where[g], 1)
    best = 0.0
    for v in range(n):
        best = max(best, finish[v])
    while budget > 0:
        g, d, x, length, budget = _next(
            a, where, left, used, critical(a, where, start, finish, best), best, budget, room
        )
        if g < 0:
            break
        best, here = length, where[g]
        start[:], finish[:] = room[3], room[4]
        _swap(where, g, here, d, x)
        _hold(a, left, used, g, here, -1)
        _hold(a, left, used, g, d, 1)
        if x >= 0:
            _hold(a, left, used, x, d, -1)
            _hold(a, left, used, x, here, 1)
    return best


@njit(cache=True)
def _next(a: Any, where: Any, left: Any, used: Any, ops: Any, best: float, budget: int, room: Any) -> Any:
    """Return the first change that helps: (group or -1, its new device, group that goes back or -1, makespan, budget).

    Where the device has no room for the group, one that is there changes places with it.
    """
    tried = np.zeros((len(where), len(left)), np.bool_)
    for v in ops:
        g = a.group[v]
        for d in range(len(left)):
            if tried[g, d] or d == where[g] or not np.isfinite(a.work[d, g]) or _twin(a, used, d):
                continue
            tried[g, d] = True
            for x in range(-1, len(where)):
                if not _fits(a, where, left, g, d, x):
                    continue
                length = _length(a, where, g, d, x, room)
                budget -= len(a.group)
                if length < best * _LESS:
                    return g, d, x, length, budget
                if budget <= 0:
                    return -1, -1, -1, best, budget
                if x < 0:
                    break
    return -1, -1, -1, best, budget


@njit(cache=True)
def _length(a: Any, where: Any, g: int, d: int, x: int, room: Any) -> float:
    """Return the makespan if group g goes to device d and x where g was; the times are in `room`."""
    device, order, key, early, end, low, high, busy = room
    here = where[g]
    _swap(where, g, here, d, x)
    for v in range(len(device)):
        device[v] = where[a.group[v]]
    _swap(where, g, d, here, x)
    ranks(a, device, order, key)
    sort(key, a.topological, order)
    return float(forward(a, device, order, early, end, low, high, busy))


@njit(cache=True)
def _swap(where: Any, g: int, here: int, d: int, x: int) -> None:
    """Move group g from device `here` to d, and group x, if it is not -1, the other way."""
    where[g] = d
    if x >= 0:
        where[x] = here


@njit(cache=True)
def critical(a: Any, where: Any, start: Any, finish: Any, length: float) -> Any:
    """Return the ops on the ways to the end on which nothing waits for anything else, from the last on, int64."""
    n, slack = len(start), (1 - _LESS) * length
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


@njit(cache=True)
def _hold(a: Any, left: Any, used: Any, g: int, d: int, sign: int) -> None:
    left[d] -= sign * a.need[g]
    used[d] += sign


@njit(cache=True)
def _twin(a: Any, used: Any, d: int) -> bool:
    """Return whether an earlier device is just as empty and as good."""
    found = False
    for x in range(d):
        found = found or (not used[d] and not used[x] and a.twin[x] == a.twin[d])
    return found


@njit(cache=True)
def _fits(a: Any, where: Any, left: Any, g: int, d: int, x: int) -> bool:
    """Return whether group g may go to device d, and x, if it is not -1, from there to where g was."""
    if x < 0:
        return bool(a.need[g] <= left[d])
    here = where[g]
    if where[x] != d or not np.isfinite(a.work[here, x]):
        return False
    return bool(a.need[g] <= left[d] + a.need[x] and a.need[x] <= left[here] + a.need[g])
