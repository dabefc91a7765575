"""Better times for a placement: all as late as it can be, then as early, and so on; never worse. Compiled.

Forward-backward improvement (Li, Willis, EJOR 1992), on one device an op.
"""

from __future__ import annotations

import numpy as np

from ....compiled.kernel import Floats, Ints, by_reference, lean, lean_kernel
from ....compiled.routines import first, pop, push
from .arrays import Arrays
from .timetable import first_gap, occupy
from .workroom import Workroom


@lean_kernel
def polish(arrays: Arrays, workroom: Workroom, where: Ints, start: Floats, finish: Floats, rounds: int) -> float:
    """Overwrite the times with better ones and return the makespan.

    First the ops are scheduled by the upward ranks of this placement, if that is shorter. Then in each round, from the
    last to end on, each goes as late as its device and its readers let it, and, from the first to start on, as early.

    Args:
        arrays, workroom: the problem, and where schedules are made.
        where: device of each group.
        start, finish: of each op, overwritten.
        rounds: at most; without progress it ends.
    """
    a, room = by_reference(arrays), by_reference(workroom)
    n = len(start)
    for v in range(n):
        room.device[v] = where[a.group[v]]
    ranks(a, room)
    sort(room.tail, a.topological, room.heap, room.order)
    best = _keep(room, end_of(finish), forward(a, room, room.order, np.inf)[0], start, finish)
    for _ in range(rounds):
        before = best
        for v in range(n):
            room.key[v] = -finish[v]
        # backwards, and of ops that end at once a reader comes before what it reads
        sort(room.key, a.topological, room.heap, room.order)
        _backward(a, room)
        for v in range(n):
            room.key[v] = -room.start[v]
        sort(room.key, a.topological, room.heap, room.order)
        best = _keep(room, best, forward(a, room, room.order, np.inf)[0], start, finish)
        if best >= before * (1 - 1e-9):
            break
    return best


@lean
def _keep(room: Workroom, best: float, length: float, start: Floats, finish: Floats) -> float:
    """Take new times over if they are not worse, and return the makespan."""
    if length > best:
        return best
    times(room, start, finish)
    return length


@lean
def times(room: Workroom, start: Floats, finish: Floats) -> None:
    """Copy the times that the room has."""
    for v in range(len(start)):
        start[v], finish[v] = room.start[v], room.finish[v]


@lean
def end_of(finish: Floats) -> float:
    """Return the latest of some times, at least 0."""
    latest = 0.0
    for x in finish:
        latest = max(latest, x)
    return latest


@lean
def sort(key: Floats, place: Ints, heap: Ints, order: Ints) -> None:
    """Write the ops by falling key, of equals the first in `place`; the heap is overwritten."""
    size = 0
    for v in range(len(key)):
        size = push(heap, size, v, key, place)
    for i in range(len(key)):
        order[i] = heap[0]
        size = pop(heap, size, key, place)


@lean
def ranks(a: Arrays, room: Workroom) -> None:
    """Write the longest way from the start of each op to the end into `tail`."""
    for i in range(len(room.tail) - 1, -1, -1):
        v = room.topological[i]
        d, most = room.device[v], 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            most = max(most, room.tail[w] + a.delay[a.level[d, room.device[w]], v])
        room.tail[v] = most + a.seconds[d, v]


@lean
def slide(key: Floats, place: Ints, order: Ints) -> None:
    """Do what `sort` does with ops that are nearly in order: let each slide forward to where it belongs."""
    for i in range(1, len(order)):
        v, j = order[i], i
        while j > 0 and first(v, order[j - 1], key, place):
            order[j] = order[j - 1]
            j -= 1
        order[j] = v


@lean
def forward(a: Arrays, room: Workroom, order: Ints, limit: float) -> tuple[float, int]:
    """Write the earliest times of the ops in `order` and return the makespan, and how many ops were scheduled.

    It gives up as soon as the makespan would be `limit` or more, by the tails that the room has, and returns infinity.
    """
    last, done = 0.0, 0
    low, high, busy, finish = room.low, room.high, room.busy, room.finish
    for d in range(len(busy)):
        busy[d] = 0
    for v in order:
        d, ready = room.device[v], 0.0
        for i in range(a.before_first[v], a.before_first[v + 1]):
            u = a.before[i]
            ready = max(ready, finish[u] + a.delay[a.level[d, room.device[u]], u])
        took = a.seconds[d, v]
        at = first_gap(low[d], high[d], busy[d], ready, took)
        done += 1
        if at + room.tail[v] >= limit:
            return np.inf, done
        room.start[v], finish[v] = at, at + took
        last = max(last, at + took)
        busy[d] = occupy(low[d], high[d], busy[d], at, at + took)
    return last, done


@lean
def _backward(a: Arrays, room: Workroom) -> None:
    """Write the latest times of the ops, the last in `order` first, counted from the end of all, which is 0."""
    low, high, busy, start = room.low, room.high, room.busy, room.start
    for d in range(len(busy)):
        busy[d] = 0
    for i in range(len(start) - 1, -1, -1):
        v = room.order[i]
        d, ready = room.device[v], 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            # mirrored: minus the start of what reads it
            ready = max(ready, -start[w] + a.delay[a.level[d, room.device[w]], v])
        took = a.seconds[d, v]
        at = first_gap(low[d], high[d], busy[d], ready, took)
        start[v], room.finish[v] = -at - took, -at
        busy[d] = occupy(low[d], high[d], busy[d], at, at + took)
