"""The places that a job may be put in whole, compiled: all of them, or some of each kind, and those one task away.

A place is int64 (m, 2): its workers and parameter servers on each of m servers.
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray
from gangplan.simulator.snapshots import Long
from gangplan.solvers.compiled.kernel import Ints, Ints2, Ints3, inner, kernel

from .environment import Environment

MOST = 300
"""Places of a job that are looked at one and all; where there are more, a search begins with some of them."""
_STEPS = 20_000
"""Of the enumeration: where dead ends take more, there is no telling all places."""


def rooms(env: Environment, job: int) -> Long:
    """Return how many parameter servers each server takes beside 0, 1, ... workers, int64 (m, w + 1); -1 beyond."""
    jobs = env.case.jobs
    w, p = int(jobs.workers[job]), int(jobs.servers[job])
    free = env.free[:, None, :] - np.arange(w + 1)[:, None] * jobs.worker[job] + 1e-9 * env.size
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(jobs.server[job] > 0, free / jobs.server[job], np.inf).min(axis=2)
    return np.where((free >= 0).all(axis=2), np.minimum(np.floor(fits), p), -1).astype(np.int64)


def places(env: Environment, job: int, room: Long, most: int = MOST) -> tuple[Long, bool]:
    """Return places of a whole job, int64 (c, m, 2), and whether these are all there are: so up to `most` of them."""
    w, p = env.left(job)
    able = np.flatnonzero((room[:, 0] > 0) | (room[:, 1:] >= 0).any(axis=1))
    found = every(room, able, w, p, most)
    if len(found) <= most:
        return found, True
    some = fills(room, _orders(env.case.fleet.topology.group, room, able), w, p)
    _, first = np.unique(some.reshape(len(some), -1), axis=0, return_index=True)
    return some[np.sort(first)], False


def _orders(group: IntArray, room: Long, able: Long) -> Long:
    """Return for each server with room these servers, the nearest first, then the roomiest, int64 (a, a)."""
    near = group[:, able]
    far = (near[:, :, None] != near[:, None, :]).sum(axis=0)
    full = np.tile((room[able] < 0).sum(axis=1), (len(able), 1))
    # the server itself before others that are as near
    return able[np.lexsort((full, ~np.eye(len(able), dtype=np.bool_), far), axis=1)]


@kernel
def every(room: Ints2, able: Ints, w: int, p: int, most: int) -> Ints3:
    """Return every place of w workers and p parameter servers, the first servers taking most.

    Where these are more than `most`, or take too long to find, `most` + 1 rows are returned, which say nothing else.
    """
    a, found = len(able), np.zeros((most + 1, len(room), 2), np.int64)
    after = np.zeros((a + 1, 2), np.int64)  # what the servers from each on can take
    for i in range(a - 1, -1, -1):
        after[i] = after[i + 1]
        after[i, 1] += room[able[i], 0]
        for more in range(1, w + 1):
            after[i, 0] += room[able[i], more] >= 0
    here, left = np.zeros((a + 1, 2), np.int64), np.zeros((a + 1, 2), np.int64)
    left[0, 0], left[0, 1] = w, p
    count, at, down, steps = 0, 0, True, 0
    while at >= 0 and count <= most and steps <= _STEPS:
        steps += 1
        if down and left[at, 0] == 0 and left[at, 1] == 0:
            for i in range(at):
                found[count, able[i]] = here[i]
            count += 1
            at, down = at - 1, False
            continue
        if down:
            if at == a or after[at, 0] < left[at, 0] or after[at, 1] < left[at, 1]:
                at, down = at - 1, False
                continue
            x = left[at, 0]
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
        left[at + 1] = left[at] - here[at]
        at, down = at + 1, True
    return found[: most + 1 if steps > _STEPS else count].copy()


@inner
def _holds(room: Ints2, s: int, workers: int) -> bool:
    return bool(workers < room.shape[1] and room[s, workers] >= 0)


@kernel
def fills(room: Ints2, orders: Ints2, w: int, p: int) -> Ints3:
    """Return places that take servers in these orders: as tight as possible, or one worker a server at a time;
    parameter servers beside the workers, or apart. Those that do not hold the job are left out.
    """
    ways = 4 if p > 0 else 2
    found, count = np.zeros((len(orders) * ways, len(room), 2), np.int64), 0
    for i in range(len(orders)):
        for way in range(ways):
            here, left, before = found[count], w, -1
            here[:] = 0
            while left > 0 and left != before:
                before = left
                for s in orders[i]:
                    take = 0
                    while take < (left if way < ways // 2 else min(left, 1)) and _holds(room, s, here[s, 0] + take + 1):
                        take += 1
                    here[s, 0] += take
                    left -= take
            rest = p
            for turn in range(2):
                for s in orders[i]:
                    if (here[s, 0] > 0) == (turn == way % 2 * (ways // 4)):
                        here[s, 1] = min(rest, room[s, here[s, 0]])
                        rest -= here[s, 1]
            count += left == 0 and rest == 0
    return found[:count].copy()


@kernel
def moves(place: Ints2, room: Ints2) -> Ints3:
    """Return every place that differs by where one task is."""
    m = len(place)
    begun = 0
    for here in range(m):
        begun += (place[here, 0] > 0) + (place[here, 1] > 0)
    found, count = np.zeros((begun * m, m, 2), np.int64), 0
    for here in range(m):
        for kind in range(2):
            if place[here, kind] == 0:
                continue
            for there in range(m):
                w, p = place[there, 0] + (kind == 0), place[there, 1] + (kind == 1)
                if there != here and w < room.shape[1] and p <= room[there, w]:
                    found[count] = place
                    found[count, here, kind] -= 1
                    found[count, there, kind] += 1
                    count += 1
    return found[:count].copy()
