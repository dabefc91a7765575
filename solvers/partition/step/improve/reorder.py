"""Better orders for a placement: of two ops that hold up the end one behind the other, the second goes first; compiled.

The neighbourhood of van Laarhoven, Aarts, Lenstra (1992) for job shops.
"""

from __future__ import annotations

from ....compiled.kernel import Floats, Ints, lean
from .arrays import Arrays
from .neighbour import critical
from .polish import forward, ranks, times
from .workroom import Workroom

_LESS = 1 - 1e-9


@lean
def reorder(
    a: Arrays, where: Ints, start: Floats, finish: Floats, best: float, budget: int, room: Workroom
) -> tuple[float, int]:
    """Overwrite the times with better ones; return the makespan and what is left of the budget.

    Args:
        a: the problem.
        where: device of each group.
        start, finish: of each op, overwritten.
        best: makespan.
        budget: ops that may be scheduled.
        room: a workroom.
    """
    for v in range(len(start)):
        room.device[v] = where[a.group[v]]
    ranks(a, room)
    while budget > 0:
        length, budget = _next(a, where, start, finish, best, budget, room)
        if length >= best * _LESS:
            break
        best = length
        times(room, start, finish)
    return best, budget


@lean
def _next(
    a: Arrays, where: Ints, start: Floats, finish: Floats, best: float, budget: int, room: Workroom
) -> tuple[float, int]:
    """Return the makespan of the first other order that helps, with its times in the room, and the budget."""
    critical(a, where, start, finish, best, room)
    holds, last = room.holds, room.last
    for d in range(len(last)):
        last[d] = -1
    for v in room.line:
        if finish[v] <= start[v]:
            continue
        d = room.device[v]
        u, last[d] = last[d], v
        if u < 0 or not holds[u] or not holds[v] or finish[u] < start[v] - (1 - _LESS) * best:
            continue
        if not _behind(a, room, u, v):
            continue
        length, done = forward(a, room, room.other, best * _LESS)
        budget -= done
        if length < best * _LESS:
            return length, budget
        if budget <= 0:
            break
    return best, budget


@lean
def _behind(a: Arrays, room: Workroom, u: int, v: int) -> bool:
    """Write into `other` the line with u, and what needs it, right behind v; return whether v does without u.

    Args:
        a: the problem.
        room: its `line` has u before v.
        u, v: on one device.
    """
    order, other, late, i = room.line, room.other, room.late, 0
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
    for j in range(i + 1, len(order)):
        other[j] = order[j]
    return True
