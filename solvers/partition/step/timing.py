"""Times for a placement and an order, with free links or with contention, and better times; compiled.

`polish` is forward-backward improvement (Li, Willis, EJOR 1992), on one device an op."""

from __future__ import annotations

import numpy as np

from gangplan.instances import StepPlan

from ...compiled.kernel import Floats, Ints, by_reference, lean, lean_kernel
from ...compiled.routines import first, pop, push
from .arrays import Arrays, Links, Workroom
from .model import Prepared


@lean
def first_gap(low: Floats, high: Floats, count: int, ready: float, took: float) -> float:
    """Return the earliest start from `ready` on of something that takes `took`, between ascending busy stretches."""
    if count == 0 or ready >= high[count - 1]:
        return ready
    a, b = 0, count
    while a < b:
        middle = (a + b) // 2
        if high[middle] > ready:
            b = middle
        else:
            a = middle + 1
    at = ready
    for i in range(a, count):
        if at + took <= low[i]:
            return at
        at = max(at, high[i])
    return at


@lean
def occupy(low: Floats, high: Floats, count: int, start: float, end: float) -> int:
    """Make a stretch that is free busy and return how many there are then; nothing runs across one of no length."""
    i = count
    while i > 0 and low[i - 1] > start:
        i -= 1
    if start == end and i > 0 and low[i - 1] == start:
        return count
    left = i > 0 and high[i - 1] == start
    right = i < count and low[i] == end
    if left and right:
        high[i - 1] = high[i]
        for j in range(i, count - 1):
            low[j], high[j] = low[j + 1], high[j + 1]
        return count - 1
    if left:
        high[i - 1] = end
        return count
    if right:
        low[i] = start
        return count
    for j in range(count, i, -1):
        low[j], high[j] = low[j - 1], high[j - 1]
    low[i], high[i] = start, end
    return count + 1


@lean
def clear(room: Workroom) -> None:
    """Begin a new schedule."""
    for d in range(len(room.busy)):
        room.busy[d] = 0
    links = room.links
    for link in range(len(links.busy)):
        links.busy[link] = 0
    links.schedule[0] += 1


@lean
def sort_reads(a: Arrays, room: Workroom, v: int) -> None:
    """With contention, put what op v reads in the order in which it is made, for `arrival`."""
    reads, begin = room.links.reads, a.before_first[v]
    if len(room.links.busy) == 0:
        return
    for i in range(begin, a.before_first[v + 1]):
        u, j = a.before[i], i - begin
        while j > 0 and room.finish[reads[j - 1]] > room.finish[u]:
            reads[j] = reads[j - 1]
            j -= 1
        reads[j] = u


@lean
def arrival(a: Arrays, room: Workroom, v: int, d: int, book: bool) -> float:
    """Return when all that op v reads, sorted by `sort_reads`, is on device d, seconds.

    With contention an output that has not been sent there yet goes when the links of its way are free, what is made
    first before the rest. `book`: whether the links are taken, or it is only asked.
    """
    ready, links = 0.0, room.links
    begin, end = a.before_first[v], a.before_first[v + 1]
    if len(links.busy) == 0:
        for i in range(begin, end):
            u = a.before[i]
            ready = max(ready, room.finish[u] + a.delay[a.level[d, room.device[u]], u])
        return ready
    for i in range(end - begin):
        u = links.reads[i]
        here = room.device[u]
        took, there = a.delay[a.level[d, here], u], room.finish[u]
        if took > 0.0:
            if links.made[u, d] == links.schedule[0]:
                there = links.sent[u, d]
            else:
                there = _send(links, links.route[here, d], there, took, book)
                if book:
                    links.made[u, d], links.sent[u, d] = links.schedule[0], there
        ready = max(ready, there + took)
    return ready


@lean
def _send(links: Links, way: Ints, ready: float, took: float, book: bool) -> float:
    at, before = ready, -1.0
    while at != before:
        before = at
        for link in way:
            if link >= 0:
                at = first_gap(links.low[link], links.high[link], links.busy[link], at, took)
    if book:
        for link in way:
            if link >= 0:
                links.busy[link] = occupy(links.low[link], links.high[link], links.busy[link], at, at + took)
    return at


@lean
def forward(a: Arrays, room: Workroom, limit: float) -> tuple[float, int]:
    """Write the earliest times of the ops in their order and return the makespan, and how many ops were scheduled.

    It gives up as soon as the makespan would be `limit` or more, by the tails that the room has, and returns infinity.
    """
    last, done = 0.0, 0
    low, high, busy, finish = room.low, room.high, room.busy, room.finish
    clear(room)
    for v in room.order:
        d = room.device[v]
        sort_reads(a, room, v)
        ready, took = arrival(a, room, v, d, True), a.seconds[d, v]
        at = first_gap(low[d], high[d], busy[d], ready, took)
        done += 1
        if at + room.tail[v] >= limit:
            return np.inf, done
        room.start[v], finish[v] = at, at + took
        last = max(last, at + took)
        busy[d] = occupy(low[d], high[d], busy[d], at, at + took)
    return last, done


@lean_kernel
def polish(arrays: Arrays, workroom: Workroom, where: Ints, start: Floats, finish: Floats, rounds: int) -> float:
    """Overwrite the times with better ones and return the makespan.

    First the ops are scheduled by the upward ranks of this placement, if that is shorter. Then in each round, from the
    last to end on, each goes as late as its device and its readers let it, and, from the first to start on, as early.

    Args:
        rounds: at most; without progress it ends.
    """
    a, room = by_reference(arrays), by_reference(workroom)
    n = len(start)
    for v in range(n):
        room.device[v] = where[a.group[v]]
    ranks(a, room)
    sort(room.tail, a.topological, room.heap, room.order)
    best = _keep(room, end_of(finish), forward(a, room, np.inf)[0], start, finish)
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
        best = _keep(room, best, forward(a, room, np.inf)[0], start, finish)
        if best >= before * (1 - 1e-9):
            break
    return best


@lean
def _keep(room: Workroom, best: float, length: float, start: Floats, finish: Floats) -> float:
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


@lean_kernel
def schedule(arrays: Arrays, workroom: Workroom, where: Ints, order: Ints) -> float:
    """Write the earliest times of a placement's ops in an order into the room, and return the makespan."""
    a, room = by_reference(arrays), by_reference(workroom)
    for v in range(len(order)):
        room.device[v], room.order[v], room.tail[v] = where[a.group[v]], order[v], 0.0
    return forward(a, room, np.inf)[0]


def placed(p: Prepared, room: Workroom, where: Ints, order: Ints) -> StepPlan:
    """Return the plan of a device for each group, (G,), and an order of the ops, (n,), every edge forward."""
    schedule(p.arrays, room, where, order)
    sent, receiver = np.nonzero(room.links.made == room.links.schedule[0])
    return StepPlan(
        p.problem.graph.names, where[p.group_of].astype(np.int32), room.start.copy(), sent.astype(np.int32),
        receiver.astype(np.int32), room.links.sent[sent, receiver],
    )  # fmt: skip
