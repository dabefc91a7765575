"""Where the tasks of jobs fit, and where whole jobs may go; compiled."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cast, cclass, cfunc, declare, final, nogil, void
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray

if not cython.compiled:
    from gangplan.solvers.native import FixedFloats, Flags2, Float, Floats2, Int, Ints, Ints2, Ints3, within

SLACK = declare(Float, 1e-9)
"""Of demands that add up to what there is."""
STEPS = declare(Int, 20_000)
"""Of the enumeration: where dead ends take more, there is no telling all places."""


@final
@cclass
class FreeRoom:
    """What tasks find on m servers of R resources.

    Attributes:
        free: what is, (m, R).
        worker, ps: what one of each needs, (R,).
        best: the most parameter servers that find a place beside 0, 1, ... workers, and that a server takes beside as
            many of its own, (2, workers + 1).
        rest: what is left on one server, (R,).
    """

    def __init__(self, free: Floats2, worker: FixedFloats, ps: FixedFloats, workers: Int, servers: Int) -> None:
        if not len(worker) == len(ps) == free.shape[1] or min(workers, servers) < 0:
            raise ValueError(f"{workers} and {servers} tasks, of {len(worker)} and {len(ps)} resources")
        self.free, self.worker, self.ps, self.rest = free, worker, ps, np.zeros(free.shape[1])
        self.best = np.zeros((2, workers + 1), np.int64)


@cfunc
@nogil
def _need(room: FreeRoom, ps: bint, x: Int) -> Float:
    return room.ps[x] if ps else room.worker[x]


@cfunc
@nogil
def _left(room: FreeRoom, server: Int, ps: bint, less: bint) -> void:
    """Write what is left on a server, `less` one worker or parameter server."""
    for x in range(len(room.rest)):
        room.rest[x] = room.free[server, x] - (_need(room, ps, x) if less else 0.0)


@cfunc
@nogil
def _room_for(room: FreeRoom, ps: bint, most: Int) -> Int:
    """Return how many workers or parameter servers fit into what is left of a server, up to `most`."""
    fits: Int = max(most, 0)
    for x in range(len(room.rest)):
        need = _need(room, ps, x)
        some: Float = room.rest[x] / need * (1.0 + SLACK) + SLACK if need > 0.0 else fits
        if some < fits:
            fits = cast(Int, some) if some >= 1.0 else 0
    return fits


@cfunc
@nogil
def _reach(room: FreeRoom, workers: Int, servers: Int, extra: Int, ps: bint) -> Int:
    """Return how many servers, from the first on, hold all tasks beside one on server `extra`; m + 1 if none do."""
    if workers + servers == 0:
        return 0
    room.best[0, 0] = 0
    for w in range(1, workers + 1):
        room.best[0, w] = -1
    for s in range(len(room.free)):
        _left(room, s, ps, s == extra)
        most = _room_for(room, False, workers)
        for here in range(most + 1):
            room.best[1, here] = _room_for(room, True, servers)
            for x in range(len(room.rest)):
                room.rest[x] -= room.worker[x]
        for w in range(workers, -1, -1):
            found: Int = -1
            for here in range(min(most, w) + 1):
                if room.best[0, w - here] >= 0:
                    found = max(found, min(servers, room.best[0, w - here] + room.best[1, here]))
            room.best[0, w] = found
        if room.best[0, workers] >= servers:
            return s + 1
    return len(room.free) + 1


def servers_for(free: FloatArray, worker: FloatArray, ps: FloatArray, workers: Int, servers: Int) -> int:
    """Return how many servers, from the first on, hold all tasks of a job in what is free, (m, 3); m + 1 if none do."""
    room = FreeRoom(free, worker, ps, workers, servers)
    with nogil:
        reach = _reach(room, workers, servers, -1, False)
    return reach


@cfunc
@nogil
def _mask_row(room: FreeRoom, workers: Int, servers: Int, ps: bint, mask: Flags2) -> void:
    """Mark where a worker or a parameter server may go so that these other tasks still fit."""
    m: Int = len(room.free)
    enough = _reach(room, workers, servers, -1, ps)
    for s in range(m if enough <= m else 0):
        _left(room, s, ps, False)
        if _room_for(room, ps, 1) == 1:  # beyond those that are enough for the others, one is as good as any
            mask[1 if ps else 0, s] = s >= enough or _reach(room, workers, servers, s, ps) <= m


def task_mask(free: FloatArray, worker: FloatArray, ps: FloatArray, workers: Int, servers: Int) -> BoolArray:
    """Return where a worker and a parameter server may go so that all other tasks still fit, (2, m)."""
    room, mask = FreeRoom(free, worker, ps, workers, servers), np.zeros((2, len(free)), np.bool_)
    marks: Flags2 = mask.view(np.uint8)
    with nogil:
        if workers > 0:
            _mask_row(room, workers - 1, servers, False, marks)
        if servers > 0:
            _mask_row(room, workers, servers - 1, True, marks)
    return mask


def every(room: Ints2, able: Ints, w: Int, p: Int, most: Int) -> NDArray[np.int64]:
    """Return every place of w workers and p parameter servers, the first servers taking most.

    Where these are more than `most`, or take too long to find, `most` + 1 rows are returned, which say nothing else.

    Args:
        room: parameter servers that each server takes beside 0, 1, ... workers, int64 (m, w + 1 or more); -1 beyond.
        able: servers that take some task, int64 (a,).
    """
    if not within(able, len(room), False) or not 0 <= w < room.shape[1] or min(p, most) < 0:
        raise ValueError(f"{w} and {p} tasks, up to {most} places, are none of {np.shape(room)}")
    for i in range(len(able)):
        if room[able[i], 0] < 0:
            raise ValueError(f"server {able[i]} is full")
    found = np.zeros((most + 1, len(room), 2), np.int64)
    places: Ints3 = found
    work: Ints3 = np.zeros((3, len(able) + 1, 2), np.int64)
    with nogil:
        count = _every(room, able, w, p, places, work[0], work[1], work[2])
    return found[:count].copy()


@cfunc
@nogil
def _every(room: Ints2, able: Ints, w: Int, p: Int, found: Ints3, after: Ints2, here: Ints2, left: Ints2) -> Int:
    a: Int = len(able)
    most: Int = len(found) - 1
    for i in range(a - 1, -1, -1):  # what the servers from each on can take
        after[i, 0], after[i, 1] = after[i + 1, 0], after[i + 1, 1] + room[able[i], 0]
        for more in range(1, w + 1):
            if room[able[i], more] >= 0:
                after[i, 0] += 1
    left[0, 0], left[0, 1] = w, p
    count: Int = 0
    at: Int = 0
    steps: Int = 0
    down: bint = True
    while at >= 0 and count <= most and steps <= STEPS:
        steps += 1
        if down and left[at, 0] == 0 and left[at, 1] == 0:
            for i in range(at):
                found[count, able[i], 0], found[count, able[i], 1] = here[i, 0], here[i, 1]
            count += 1
            at -= 1
            down = False
            continue
        if down:
            if at == a or after[at, 0] < left[at, 0] or after[at, 1] < left[at, 1]:
                at -= 1
                down = False
                continue
            x: Int = left[at, 0]
            while room[able[at], x] < 0:
                x -= 1
            here[at, 0], here[at, 1] = x, min(left[at, 1], room[able[at], x])
        elif here[at, 1] > 0:
            here[at, 1] -= 1
        elif here[at, 0] > 0:
            here[at, 0] -= 1
            here[at, 1] = min(left[at, 1], room[able[at], here[at, 0]])
        else:
            at -= 1
            continue
        left[at + 1, 0], left[at + 1, 1] = left[at, 0] - here[at, 0], left[at, 1] - here[at, 1]
        at += 1
        down = True
    return most + 1 if steps > STEPS else count


def fills(room: Ints2, orders: Ints2, w: Int, p: Int) -> NDArray[np.int64]:
    """Return places that take servers in these orders: as tight as possible, or one worker a server at a time;
    parameter servers beside the workers, or apart. Those that do not hold the job are left out.
    """
    ways: Int = 4 if p > 0 else 2
    fine: bint = room.shape[1] > 0
    for i in range(len(orders)):
        fine = fine and within(orders[i], len(room), False)
    if not fine:
        raise ValueError(f"orders are not of the servers of {np.shape(room)}")
    found = np.zeros((len(orders) * ways, len(room), 2), np.int64)
    places: Ints3 = found
    with nogil:
        count = _fills(room, orders, w, p, ways, places)
    return found[:count].copy()


@cfunc
@nogil
def _fills(room: Ints2, orders: Ints2, w: Int, p: Int, ways: Int, found: Ints3) -> Int:
    count: Int = 0
    for i in range(len(orders)):
        for way in range(ways):
            for s in range(len(room)):
                found[count, s, 0] = found[count, s, 1] = 0
            left: Int = w
            before: Int = -1
            while left > 0 and left != before:
                before = left
                for k in range(orders.shape[1]):
                    s = orders[i, k]
                    most: Int = left if way < ways // 2 else min(left, 1)
                    while most > 0 and found[count, s, 0] + 1 < room.shape[1] and room[s, found[count, s, 0] + 1] >= 0:
                        found[count, s, 0] += 1
                        most -= 1
                        left -= 1
            rest: Int = p
            for turn in range(2):
                beside: bint = turn == way % 2 * (ways // 4)
                for k in range(orders.shape[1]):
                    s = orders[i, k]
                    if (found[count, s, 0] > 0) == beside:
                        found[count, s, 1] = min(rest, room[s, found[count, s, 0]])
                        rest -= found[count, s, 1]
            if left == 0 and rest == 0:
                count += 1
    return count


def moves(place: Ints2, room: Ints2) -> NDArray[np.int64]:
    """Return every place that differs by where one task is."""
    m: Int = len(place)
    tasks: Int = 0
    fine: bint = m == len(room) and place.shape[1] == 2
    for s in range(m if fine else 0):
        for kind in range(2):
            fine = fine and place[s, kind] >= 0
            tasks += place[s, kind] > 0
    if not fine:
        raise ValueError(f"{np.shape(place)} is no place in {np.shape(room)}")
    found = np.zeros((tasks * m, m, 2), np.int64)
    places: Ints3 = found
    with nogil:
        count = _moves(place, room, places)
    return found[:count].copy()


@cfunc
@nogil
def _moves(place: Ints2, room: Ints2, found: Ints3) -> Int:
    count: Int = 0
    for here in range(len(place)):
        for kind in range(2):
            for there in range(len(place) if place[here, kind] else 0):
                w = place[there, 0] + (1 - kind)
                p = place[there, 1] + kind
                if there != here and w < room.shape[1] and p <= room[there, w]:
                    for s in range(len(place)):
                        found[count, s, 0], found[count, s, 1] = place[s, 0], place[s, 1]
                    found[count, here, kind] -= 1
                    found[count, there, kind] += 1
                    count += 1
    return count
