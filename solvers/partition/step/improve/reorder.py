"""Better orders for a placement: of two ops that hold up the end one behind the other, the second goes first; compiled.

The neighbourhood of van Laarhoven, Aarts, Lenstra (1992) for job shops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .neighbour import critical
from .polish import forward, ranks, sort

_LESS = 1 - 1e-9


@njit(cache=True)
def reorder(a: Any, where: Any, start: Any, finish: Any, best: float, budget: int, room: Any) -> Any:
    """Overwrite the times with better ones; return the makespan and what is left of the budget.

    Args:
        a: the problem, `Arrays`.
        where: device of each group.
        start, finish: of each op, overwritten.
        best: makespan.
        budget: ops that may be scheduled.
        room: a workroom.
    """
    n = len(start)
    for v in range(n):
        room.device[v] = where[a.group[v]]
    ranks(a, room.device, room.topological, room.tail)
    made = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    while budget > 0:
        length, budget = _next(a, where, start, finish, best, budget, room, made)
        if length >= best * _LESS:
            break
        best = length
        start[:], finish[:] = room.start, room.finish
    return best, budget


@njit(cache=True)
def _next(a: Any, where: Any, start: Any, finish: Any, best: float, budget: int, room: Any, made: Any) -> Any:
    """Return the makespan of the first other order that helps, with its times in the room, and the budget."""
    order, other, late, key = made
    n = len(start)
    for v in range(n):
        key[v] = -start[v]
    sort(key, a.topological, order)
    holds = np.zeros(n, np.bool_)
    for v in critical(a, where, start, finish, best):
        holds[v] = True
    last = np.full(len(a.room), -1)
    for v in order:
        if finish[v] <= start[v]:
            continue
        d = room.device[v]
        u, last[d] = last[d], v
        if u < 0 or not holds[u] or not holds[v] or finish[u] < start[v] - (1 - _LESS) * best:
            continue
        if not _behind(a, order, u, v, late, other):
            continue
        length, done = forward(
            a, room.device, other, room.tail, best * _LESS, room.start, room.finish, room.low, room.high, room.busy
        )
        budget -= done
        if length < best * _LESS:
            return length, budget
        if budget <= 0:
            break
    return best, budget


@njit(cache=True)
def _behind(a: Any, order: Any, u: int, v: int, late: Any, other: Any) -> bool:
    """Write the order with u, and what needs it, right behind v, and return whether v does without u.

    Args:
        a: the problem.
        order: ops, u before v.
        u, v: on one device.
        late, other: are written, int64 (n,); the order is `other`.
    """
    n, i = len(order), 0
    while order[i] != u:
        other[i] = order[i]
        i += 1
    late[0], count, at = u, 1, i
    while order[i] != v:
        i += 1
        x, needs = order[i], False
        for j in range(a.before_first[x], a.before_first[x + 1]):
            for h in range(count):
                needs = needs or late[h] == a.before[j]
        if needs:
            if x == v:
                return False
            late[count] = x
            count += 1
        else:
            other[at] = x
            at += 1
    for h in range(count):
        other[at + h] = late[h]
    for j in range(i + 1, n):
        other[j] = order[j]
    return True
