"""Better plans from a plan: groups that hold up the end move, ops change their order, and all begins anew. Compiled.

Descent by critical moves (Nowicki, Smutnicki, 1996, for shops), the first that helps; where nothing does, some groups
are moved at random, and descent goes on from there (iterated local search: Lourenço, Martin, Stützle, 2003).
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ....compiled.kernel import Floats, Ints, by_reference, lean, lean_kernel
from .arrays import Arrays
from .neighbour import critical, time_if
from .polish import end_of, ranks, times
from .reorder import reorder
from .shift import Descent, enter, fits, hold, kick, twin
from .workroom import Workroom, workroom

LESS = 1 - 1e-9
"""A makespan below this share of another one is shorter."""


def descended(
    a: Arrays, where: IntArray, start: FloatArray, finish: FloatArray, budget: int, draws: FloatArray
) -> float:
    """Overwrite devices and times with better ones and return the makespan.

    Args:
        a: the problem.
        where: device of each group, overwritten.
        start, finish: of each op, overwritten.
        budget: ops that may be scheduled in all; at a plan that cannot be shorter it ends before.
        draws: from 0 to 1, float64 (many,): what is moved at random.
    """
    k = len(a.room)
    tried = np.zeros((len(where), k), np.bool_)
    s = Descent(where.copy(), start.copy(), finish.copy(), np.zeros(k), np.zeros(k, np.int64), tried, draws)
    return descend(a, s, workroom(a), where, start, finish, budget)


@lean_kernel
def descend(
    arrays: Arrays, descent: Descent, workroom: Workroom, where: Ints, start: Floats, finish: Floats, budget: int
) -> float:
    """Do what `descended` says, with a search that is where it begins."""
    a, s, room = by_reference(arrays), by_reference(descent), by_reference(workroom)
    bound, drawn = _least(a, room), 0
    best = length = end_of(finish)
    _hold_all(a, s)
    while True:
        length, budget = _to_the_bottom(a, s, length, budget, room)
        if length < best * LESS:
            best = length
            _copy(s.where, s.start, s.finish, where, start, finish)
        if budget <= 0 or best * LESS <= bound:
            return best
        _copy(where, start, finish, s.where, s.start, s.finish)
        _hold_all(a, s)
        moved, drawn = kick(a, s, drawn)
        if not moved:
            return best
        for v in range(len(start)):
            room.device[v] = s.where[a.group[v]]
        ranks(a, room)
        length, done = time_if(a, room, np.inf)
        times(room, s.start, s.finish)
        budget -= done


@lean
def _copy(where: Ints, start: Floats, finish: Floats, to_where: Ints, to_start: Floats, to_finish: Floats) -> None:
    for g in range(len(where)):
        to_where[g] = where[g]
    for v in range(len(start)):
        to_start[v], to_finish[v] = start[v], finish[v]


@lean
def _to_the_bottom(a: Arrays, s: Descent, best: float, budget: int, room: Workroom) -> tuple[float, int]:
    """Move groups and change orders until neither helps; return the makespan and what is left of the budget."""
    while True:
        before = best
        best, budget = _move(a, s, best, budget, room)
        if budget > 0:
            best, budget = reorder(a, s.where, s.start, s.finish, best, budget, room)
        if budget <= 0 or best >= before * LESS:
            return best, budget


@lean
def _move(a: Arrays, s: Descent, best: float, budget: int, room: Workroom) -> tuple[float, int]:
    """Move groups as long as that helps; return the makespan and what is left of the budget."""
    while budget > 0:
        length, budget = _next(a, s, best, budget, room)
        if length >= best * LESS:
            break
        best = length
        times(room, s.start, s.finish)
    return best, budget


@lean
def _next(a: Arrays, s: Descent, best: float, budget: int, room: Workroom) -> tuple[float, int]:
    """Make the first change that helps; return the makespan and what is left of the budget.

    Where the device has no room for a group, one that is there changes places with it.
    """
    groups, devices = s.tried.shape
    for g in range(groups):
        for d in range(devices):
            s.tried[g, d] = False
    for i in range(critical(a, s.where, s.start, s.finish, best, room)):
        g = a.group[room.found[i]]
        for d in range(devices):
            if s.tried[g, d] or d == s.where[g] or not np.isfinite(a.work[d, g]) or twin(a, s, d):
                continue
            s.tried[g, d] = True
            for x in range(-1, groups):
                if not fits(a, s, g, d, x):
                    continue
                length, done = _length(a, s, g, d, x, best * LESS, room)
                budget -= done
                if length < best * LESS:
                    enter(a, s, g, d, x)
                    return length, budget
                if budget <= 0:
                    return best, budget
                if x < 0:
                    break
    return best, budget


@lean
def _length(a: Arrays, s: Descent, g: int, d: int, x: int, limit: float, room: Workroom) -> tuple[float, int]:
    """Return the makespan if group g goes to device d and x where g was, infinite from `limit` on, and ops scheduled.

    The order is that of the upward ranks of the placement; they tell early that a plan gets too long.
    """
    n, here = len(room.device), s.where[g]
    for v in range(n):
        h = a.group[v]
        room.device[v] = d if h == g else here if h == x else s.where[h]
    ranks(a, room)
    for v in range(n):
        if room.tail[v] >= limit:
            return np.inf, n // 3
    length, done = time_if(a, room, limit)
    return length, n // 3 + done


@lean
def _hold_all(a: Arrays, s: Descent) -> None:
    """Count the bytes that are left on each device, and how many groups it has."""
    for d in range(len(s.left)):
        s.left[d], s.used[d] = a.room[d], 0
    for g in range(len(s.where)):
        hold(a, s, g, s.where[g], 1)


@lean
def _least(a: Arrays, room: Workroom) -> float:
    """Return what no plan is shorter than: an even load, the longest group, the longest path without sending."""
    total, most, longest = 0.0, 0.0, room.tail
    for g in range(a.work.shape[1]):
        least = a.work[0, g]
        for d in range(1, len(a.room)):
            least = min(least, a.work[d, g])
        total, most = total + least, max(most, least)
    for j in range(len(longest) - 1, -1, -1):
        v = room.topological[j]
        path, least = 0.0, a.seconds[0, v]
        for i in range(a.after_first[v], a.after_first[v + 1]):
            path = max(path, longest[a.after[i]])
        for d in range(1, len(a.room)):
            least = min(least, a.seconds[d, v])
        longest[v] = path + least
        most = max(most, longest[v])
    return max(most, total / len(a.room))
