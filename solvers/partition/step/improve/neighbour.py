"""What a search looks at around a plan: which ops hold up its end, and how long another plan would be; compiled."""

from __future__ import annotations

from ....compiled.kernel import Floats, Ints, lean
from .arrays import Arrays
from .polish import forward, slide, sort
from .workroom import Workroom


@lean
def time_if(a: Arrays, room: Workroom, limit: float) -> tuple[float, int]:
    """Schedule ops by falling tails; return the makespan, infinite from `limit` on, and how many were scheduled."""
    slide(room.tail, a.topological, room.order)
    return forward(a, room, room.order, limit)


@lean
def critical(a: Arrays, where: Ints, start: Floats, finish: Floats, length: float, room: Workroom) -> int:
    """Write the ops on the ways to the end on which nothing waits for anything else into `found`, from the last on.

    Return how many they are; in the room `holds` tells for each op whether it is one, and `line` has all ops by their
    starts.
    """
    n, slack, size = len(start), 1e-9 * length, 0
    found, holds, line, behind, last = room.found, room.holds, room.line, room.behind, room.last
    for v in range(n):
        room.key[v], holds[v] = -start[v], False
    sort(room.key, a.topological, room.heap, line)
    for d in range(len(last)):
        last[d] = -1
    for v in line:
        # what the device did just before
        d = where[a.group[v]]
        behind[v] = last[d]
        if last[d] < 0 or finish[v] >= finish[last[d]]:
            last[d] = v
    for i in range(n - 1, -1, -1):
        v = line[i]
        if finish[v] >= length - slack:
            found[size], holds[v] = v, True
            size += 1
    head = 0
    while head < size:
        v = found[head]
        head += 1
        d, u = where[a.group[v]], behind[v]
        if u >= 0 and not holds[u] and finish[u] >= start[v] - slack:
            found[size], holds[u] = u, True
            size += 1
        for i in range(a.before_first[v], a.before_first[v + 1]):
            u = a.before[i]
            if not holds[u] and finish[u] + a.delay[a.level[d, where[a.group[u]]], u] >= start[v] - slack:
                found[size], holds[u] = u, True
                size += 1
    return size
