"""Better plans from a plan: groups that hold up the end move, ops change their order, and all begins anew. Compiled.

Descent by critical moves (Nowicki, Smutnicki, 1996, for shops), the first that helps; where nothing does, some groups
are moved at random, and descent goes on from there (iterated local search: Lourenço, Martin, Stützle, 2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .neighbour import critical, time_if, workroom
from .polish import end_of, ranks
from .reorder import reorder
from .shift import enter, fits, hold, kick, twin

LESS = 1 - 1e-9
"""A makespan below this share of another one is shorter."""


@njit(cache=True)
def descend(a: Any, where: Any, start: Any, finish: Any, budget: int, draws: Any) -> float:
    """Overwrite devices and times with better ones and return the makespan.

    Args:
        a: the problem, `Arrays`.
        where: device of each group, overwritten.
        start, finish: of each op, overwritten.
        budget: ops that may be scheduled in all; at a plan that cannot be shorter it ends before.
        draws: from 0 to 1, float64 (many,): what is moved at random.
    """
    room, bound, drawn = workroom(a), _least(a), 0
    left, used = _held(a, where)
    here, begin, end = where.copy(), start.copy(), finish.copy()
    best = length = end_of(finish)
    while True:
        length, budget = _to_the_bottom(a, here, begin, end, length, budget, left, used, room)
        if length < best * LESS:
            best = length
            where[:], start[:], finish[:] = here, begin, end
        if budget <= 0 or best * LESS <= bound:
            return best
        here[:] = where
        left, used = _held(a, here)
        moved, drawn = kick(a, here, left, used, draws, drawn)
        if not moved:
            return best
        for v in range(len(start)):
            room.device[v] = here[a.group[v]]
        ranks(a, room.device, room.topological, room.tail)
        length, done = time_if(a, room, np.inf)
        begin[:], end[:] = room.start, room.finish
        budget -= done


@njit(cache=True)
def _to_the_bottom(
    a: Any, where: Any, start: Any, finish: Any, best: float, budget: int, left: Any, used: Any, room: Any
) -> Any:
    """Move groups and change orders until neither helps; return the makespan and what is left of the budget."""
    while True:
        before = best
        best, budget = _move(a, where, start, finish, best, budget, left, used, room)
        if budget > 0:
            best, budget = reorder(a, where, start, finish, best, budget, room)
        if budget <= 0 or best >= before * LESS:
            return best, budget


@njit(cache=True)
def _move(
    a: Any, where: Any, start: Any, finish: Any, best: float, budget: int, left: Any, used: Any, room: Any
) -> Any:
    """Move groups as long as that helps; return the makespan and what is left of the budget."""
    while budget > 0:
        length, budget = _next(a, where, start, finish, best, budget, left, used, room)
        if length >= best * LESS:
            break
        best = length
        start[:], finish[:] = room.start, room.finish
    return best, budget


@njit(cache=True)
def _next(
    a: Any, where: Any, start: Any, finish: Any, best: float, budget: int, left: Any, used: Any, room: Any
) -> Any:
    """Make the first change that helps; return the makespan and what is left of the budget.

    Where the device has no room for a group, one that is there changes places with it.
    """
    tried = np.zeros((len(where), len(left)), np.bool_)
    for v in critical(a, where, start, finish, best):
        g = a.group[v]
        for d in range(len(left)):
            if tried[g, d] or d == where[g] or not np.isfinite(a.work[d, g]) or twin(a, used, d):
                continue
            tried[g, d] = True
            for x in range(-1, len(where)):
                if not fits(a, where, left, g, d, x):
                    continue
                length, done = _length(a, where, g, d, x, best * LESS, room)
                budget -= done
                if length < best * LESS:
                    enter(a, where, left, used, g, d, x)
                    return length, budget
                if budget <= 0:
                    return best, budget
                if x < 0:
                    break
    return best, budget


@njit(cache=True)
def _length(a: Any, where: Any, g: int, d: int, x: int, limit: float, room: Any) -> Any:
    """Return the makespan if group g goes to device d and x where g was, infinite from `limit` on, and ops scheduled.

    The order is that of the upward ranks of the placement; they tell early that a plan gets too long.
    """
    n, here = len(room.device), where[g]
    for v in range(n):
        h = a.group[v]
        room.device[v] = d if h == g else here if h == x else where[h]
    ranks(a, room.device, room.topological, room.tail)
    for v in range(n):
        if room.tail[v] >= limit:
            return np.inf, n // 3
    length, done = time_if(a, room, limit)
    return length, n // 3 + done


@njit(cache=True)
def _held(a: Any, where: Any) -> Any:
    """Return the bytes that are left on each device, and how many groups it has."""
    left, used = a.room.copy(), np.zeros(len(a.room), np.int64)
    for g in range(len(where)):
        hold(a, left, used, g, where[g], 1)
    return left, used


@njit(cache=True)
def _least(a: Any) -> float:
    """Return what no plan is shorter than: an even load, the longest group, the longest path without sending."""
    total, most = 0.0, 0.0
    for g in range(a.work.shape[1]):
        least = a.work[:, g].min()
        total, most = total + least, max(most, least)
    longest, order = np.zeros(len(a.group)), np.argsort(a.topological)
    for v in order[::-1]:
        path = 0.0
        for i in range(a.after_first[v], a.after_first[v + 1]):
            path = max(path, longest[a.after[i]])
        longest[v] = path + a.seconds[:, v].min()
        most = max(most, longest[v])
    return max(most, total / len(a.room))
