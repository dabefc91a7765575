"""Times for a placement and an order, with free links or with contention, and better times; compiled.

`polish` is forward-backward improvement (Li, Willis, EJOR 1992), on one device an op."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil

from gangplan.instances import StepPlan

from ...native import Heap

if not cython.compiled:
    from ...native import Float, Floats, Int, Ints
    from .arrays import StepArrays, within

NEVER = declare(Float, float("inf"))


@final
@cclass
class Stretches:
    """When each of some devices or links is busy: stretches of time, ascending, of which none begins as another ends.

    Attributes:
        low, high: of each stretch, seconds, float64 (devices, most).
        count: of the stretches of each, int64 (devices,).
    """

    def __init__(self, devices: Int, most: Int) -> None:
        self.low, self.high = np.zeros((2, devices, most))
        self.count = np.zeros(devices, np.int64)

    def clear(self) -> None:
        """Free all."""
        for d in range(len(self.count)):
            self.count[d] = 0

    def first(self, d: Int, ready: Float, took: Float) -> Float:
        """Return the earliest start on d from `ready` on of something that takes `took`."""
        count = self.count[d]
        if count == 0 or ready >= self.high[d, count - 1]:
            return ready
        a: Int = 0
        b: Int = count
        while a < b:
            middle = (a + b) // 2
            if self.high[d, middle] > ready:
                b = middle
            else:
                a = middle + 1
        at: Float = ready
        for i in range(a, count):
            if at + took <= self.low[d, i]:
                return at
            at = max(at, self.high[d, i])
        return at

    def take(self, d: Int, start: Float, end: Float) -> None:
        """Make a stretch that is free busy; nothing runs across one of no length."""
        count = self.count[d]
        i: Int = count
        while i > 0 and self.low[d, i - 1] > start:
            i -= 1
        if start == end and i > 0 and self.low[d, i - 1] == start:
            return
        left: bint = i > 0 and self.high[d, i - 1] == start
        right: bint = i < count and self.low[d, i] == end
        j: Int
        if left:
            self.high[d, i - 1] = self.high[d, i] if right else end
            if right:
                self.count[d] -= 1
                for j in range(i, count - 1):
                    self.low[d, j], self.high[d, j] = self.low[d, j + 1], self.high[d, j + 1]
        elif right:
            self.low[d, i] = start
        else:
            for j in range(count, i, -1):
                self.low[d, j], self.high[d, j] = self.low[d, j - 1], self.high[d, j - 1]
            self.low[d, i], self.high[d, i] = start, end
            self.count[d] += 1


@final
@cclass
class Workroom:
    """Where schedules of a problem are made; n ops, k devices.

    Attributes:
        schedule, done: number of the schedule, and how many ops are in.
        device: of each op, (n,).
        order: in which ops are scheduled, (n,); nearly that of the schedule before.
        topological: ops in a topological order, (n,).
        tail: longest way from the start of each op to the end, (n,).
        start, finish: of each op, (n,).
        key: what ops are sorted by, (n,).
        reads: what an op reads, in the order in which it is made, (n,).
        route: links between two devices, -1 behind the last; like all of links, nothing without contention, (k, k, R).
        sent, made: when the output of each op begins to be sent to each device, and by which schedule, (n, k).
    """

    def __init__(self, p: Any) -> None:
        """Make room for a `Prepared`."""
        n, k, links, transfers = p.n, p.n_devices, 0, 0
        self.arrays, self.contention, self.schedule, self.done = p.arrays, p.contention, 0, 0
        if p.contention:
            links, transfers = len(p.links.names), len(p.edges[0])
        self.route = p.links.table() if p.contention else np.zeros((0, 0, 0), np.int64)
        self.sent, self.made = (np.zeros((n, k) if p.contention else (0, 0), x) for x in (np.float64, np.int64))
        self.devices, self.links = Stretches(k, n), Stretches(links, transfers)
        self.device, self.reads = np.zeros((2, n), np.int64)
        self.order, self.topological = np.array([p.order] * 2, np.int64)
        self.start, self.finish, tail, key = np.zeros((4, n))
        self.tail, self.by_tail, self.key, self.by_key = tail, Heap(tail, p.rank), key, Heap(key, p.rank)


def clear(room: Workroom) -> None:
    """Begin a new schedule."""
    room.devices.clear()
    room.links.clear()
    room.schedule += 1
    room.done = 0


def sort_reads(a: StepArrays, room: Workroom, v: Int) -> None:
    """With contention, put what op v reads in the order in which it is made, for `arrival`."""
    if room.contention:
        begin = a.before_first[v]
        for i in range(begin, a.before_first[v + 1]):
            u = a.before[i]
            j: Int = i - begin
            while j > 0 and room.finish[room.reads[j - 1]] > room.finish[u]:
                room.reads[j] = room.reads[j - 1]
                j -= 1
            room.reads[j] = u


def arrival(a: StepArrays, room: Workroom, v: Int, d: Int, book: bint) -> Float:
    """Return when all that op v reads, sorted by `sort_reads`, is on device d, seconds.

    With contention an output that has not been sent there yet goes when the links of its way are free, what is made
    first before the rest. `book`: whether the links are taken, or it is only asked.
    """
    ready: Float = 0.0
    begin, end = a.before_first[v], a.before_first[v + 1]
    if not room.contention:
        for i in range(begin, end):
            u = a.before[i]
            ready = max(ready, room.finish[u] + a.delay[a.level[d, room.device[u]], u])
        return ready
    for i in range(end - begin):
        u = room.reads[i]
        here = room.device[u]
        took, there = a.delay[a.level[d, here], u], room.finish[u]
        if took > 0.0:
            if room.made[u, d] == room.schedule:
                there = room.sent[u, d]
            else:
                there = _send(room, here, d, there, took, book)
                if book:
                    room.made[u, d], room.sent[u, d] = room.schedule, there
        ready = max(ready, there + took)
    return ready


def _send(room: Workroom, here: Int, d: Int, ready: Float, took: Float, book: bint) -> Float:
    at: Float = ready
    before: Float = -1.0
    while at != before:
        before = at
        for i in range(room.route.shape[2]):
            if room.route[here, d, i] >= 0:
                at = room.links.first(room.route[here, d, i], at, took)
    if book:
        for i in range(room.route.shape[2]):
            if room.route[here, d, i] >= 0:
                room.links.take(room.route[here, d, i], at, at + took)
    return at


def forward(a: StepArrays, room: Workroom, limit: Float) -> Float:
    """Write the earliest times of the ops in their order and return the makespan.

    It gives up as soon as the makespan would be `limit` or more, by the tails that the room has, and returns infinity.
    """
    last: Float = 0.0
    clear(room)
    for i in range(a.ops):
        v = room.order[i]
        d = room.device[v]
        sort_reads(a, room, v)
        took = a.seconds[d, v]
        at = room.devices.first(d, arrival(a, room, v, d, True), took)
        room.done += 1
        if at + room.tail[v] >= limit:
            return NEVER
        room.start[v], room.finish[v] = at, at + took
        last = max(last, at + took)
        room.devices.take(d, at, at + took)
    return last


def polish(room: Workroom, device: Ints, start: Floats, finish: Floats, rounds: Int) -> float:
    """Overwrite the times of a plan with better ones and return the makespan.

    First the ops are scheduled by the upward ranks of this placement, if that is shorter. Then in each round, from the
    last to end on, each goes as late as its device and its readers let it, and, from the first to start on, as early.

    Args:
        device: of each op, (n,).
        start, finish: of each op, float64 (n,).
        rounds: at most; without progress it ends.
    """
    a = room.arrays
    if not len(device) == len(start) == len(finish) == a.ops or not within(device, a.devices):
        raise ValueError(f"{len(device)} devices, {len(start)} starts, {len(finish)} ends are not those of {a.ops} ops")
    best: Float = 0.0
    with nogil:
        for v in range(a.ops):
            room.device[v] = device[v]
            best = max(best, finish[v])
        ranks(a, room)
        sort(room, room.by_tail)
        best = _keep(room, best, forward(a, room, NEVER), start, finish)
        for _ in range(rounds):
            before: Float = best
            for v in range(a.ops):
                room.key[v] = -finish[v]
            # backwards, and of ops that end at once a reader comes before what it reads
            sort(room, room.by_key)
            _backward(a, room)
            for v in range(a.ops):
                room.key[v] = -room.start[v]
            sort(room, room.by_key)
            best = _keep(room, best, forward(a, room, NEVER), start, finish)
            if best >= before * (1 - 1e-9):
                break
    return best


def _keep(room: Workroom, best: Float, length: Float, start: Floats, finish: Floats) -> Float:
    if length > best:
        return best
    for v in range(len(start)):
        start[v], finish[v] = room.start[v], room.finish[v]
    return length


def sort(room: Workroom, heap: Heap) -> None:
    """Put the ops in order of falling value, of equals the first in a topological order."""
    for v in range(len(room.order)):
        heap.push(v)
    for i in range(len(room.order)):
        room.order[i] = heap.pop()


def ranks(a: StepArrays, room: Workroom) -> None:
    """Write the longest way from the start of each op to the end into `tail`."""
    for i in range(a.ops - 1, -1, -1):
        v = room.topological[i]
        d = room.device[v]
        most: Float = 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            most = max(most, room.tail[w] + a.delay[a.level[d, room.device[w]], v])
        room.tail[v] = most + a.seconds[d, v]


def slide(key: Floats, place: Ints, order: Ints) -> None:
    """Do what `sort` does with ops that are nearly in order: let each slide forward to where it belongs."""
    for i in range(1, len(order)):
        v = order[i]
        j: Int = i
        while j > 0:
            u = order[j - 1]
            if not (key[v] > key[u] or (key[v] == key[u] and place[v] < place[u])):
                break
            order[j] = u
            j -= 1
        order[j] = v


def _backward(a: StepArrays, room: Workroom) -> None:
    """Write the latest times of the ops, the last in `order` first, counted from the end of all, which is 0."""
    room.devices.clear()
    for i in range(a.ops - 1, -1, -1):
        v = room.order[i]
        d = room.device[v]
        ready: Float = 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            # mirrored: minus the start of what reads it
            ready = max(ready, -room.start[w] + a.delay[a.level[d, room.device[w]], v])
        took = a.seconds[d, v]
        at = room.devices.first(d, ready, took)
        room.start[v], room.finish[v] = -at - took, -at
        room.devices.take(d, at, at + took)


def placed(p: Any, room: Workroom, where: Any, order: Any) -> StepPlan:
    """Return the plan of a device for each group, (G,), and an order of the ops, (n,), every edge forward."""
    device, a = np.asarray(where)[p.group_of], room.arrays
    devices: Ints = device.astype(np.int64)
    ops: Ints = order
    if not len(devices) == len(ops) == a.ops or not within(devices, a.devices) or not within(ops, a.ops):
        raise ValueError(f"{len(devices)} devices and {len(ops)} ops are no plan of {a.ops} ops")
    with nogil:
        for v in range(a.ops):
            room.device[v], room.order[v], room.tail[v] = devices[v], ops[v], 0.0
        forward(a, room, NEVER)
    sent, receiver = np.nonzero(np.asarray(room.made) == room.schedule)
    return StepPlan(
        p.problem.graph.names, device.astype(np.int32), np.array(room.start), sent.astype(np.int32),
        receiver.astype(np.int32), np.asarray(room.sent)[sent, receiver],
    )  # fmt: skip
