"""Schedules of lists, compiled: each job in the order of a list as early as it fits, as it wishes or as costs least.

When and where that is a profile of each node says: free GPUs between break points.

A pool of counted GPUs is one node; a server of a RAMP cluster is a node of one GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled.kernel import Floats, Floats2, Ints, Ints2, by_reference, inner, kernel
from ..compiled.routines import argsort


class Data(NamedTuple):
    """The part of `gangplan.solvers.schedule.prepare.PreparedJobs` that compiled code reads, by the same names."""

    first: Ints
    gpus: Ints
    seconds: Floats
    due: Floats
    release: Floats
    slope: Floats
    price: Floats
    makespan: bool
    kind: int
    per: int
    size: Ints
    block_first: Ints
    server: Ints


class Room(NamedTuple):
    """What a schedule is built in, on m nodes; all of it is written to.

    Attributes:
        times, free, count: profiles of the nodes: break points, free GPUs from each on, (m, t), how many, (m,).
        chosen, spot: nodes of the best option and of one that is looked at.
        whole, part: when each node has room, (m,).
    """

    times: Floats2
    free: Ints2
    count: Ints
    chosen: Ints
    spot: Ints
    whole: Floats
    part: Floats


def new(nodes: int, gpus: int, most: int, widest: int = 1) -> Room:
    """Return idle nodes with room for `most` rows, and for jobs on up to `widest` nodes."""
    times = np.full((nodes, 2 * most + 2), np.inf)
    times[:, 0] = -np.inf
    return Room(
        times, np.full((nodes, 2 * most + 2), gpus, dtype=np.int64), np.ones(nodes, dtype=np.int64),
        np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.int64), np.empty(nodes), np.empty(nodes),
    )  # fmt: skip


@inner
def clear(room: Room, per: int) -> None:
    """Empty the profiles."""
    for v in range(len(room.count)):
        room.count[v] = 1
        room.free[v, 0] = per


@inner
def _at(times: Floats2, node: int, count: int, at: float) -> int:
    low, high = 0, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if times[node, middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def idle_at(room: Room, node: int, at: float) -> int:
    """Return how many GPUs of a node are free at a time."""
    return int(room.free[node, _at(room.times, node, room.count[node], at)])


@inner
def earliest(room: Room, node: int, after: float, need: int, seconds: float) -> float:
    """Return when a node first has `need` GPUs free for so many seconds, not before `after`."""
    if seconds <= 0:
        return after
    times, free, count = room.times, room.free, room.count[node]
    at, k = after, _at(times, node, count, after)
    while k < count and times[node, k] < at + seconds:
        if free[node, k] < need:
            if k + 1 == count:
                return np.inf
            at = times[node, k + 1]
        k += 1
    return at


@inner
def occupy(room: Room, node: int, start: float, end: float, need: int) -> None:
    """Take GPUs of a node from `start` to `end`."""
    if end <= start:
        return
    a = _split(room, node, start)
    b = _split(room, node, end)
    for k in range(a, b):
        room.free[node, k] -= need


@inner
def _split(room: Room, node: int, at: float) -> int:
    times, free, n = room.times, room.free, room.count[node]
    low = _at(times, node, n, at)
    if times[node, low] == at:
        return low
    for k in range(n, low + 1, -1):
        times[node, k] = times[node, k - 1]
        free[node, k] = free[node, k - 1]
    times[node, low + 1] = at
    free[node, low + 1] = free[node, low]
    room.count[node] = n + 1
    return low + 1


@inner
def find(data: Data, room: Room, job: int, option: int, chosen: Ints) -> tuple[float, int]:
    """Return (start, nodes) where a job fits first by an option; write its nodes to `chosen`, a part node last.

    Of nodes that are as early, a job on one takes that with the fewest free GPUs; of blocks the first.
    """
    after, need, seconds = data.release[job], data.gpus[option], data.seconds[option]
    if data.kind == 2:
        return _block(data, room, after, need, seconds, chosen)
    if need <= data.per:
        best, tight = np.inf, 0
        for node in range(len(room.count)):
            at = earliest(room, node, after, need, seconds)
            if at < best or (at == best and at < np.inf):
                left = idle_at(room, node, at)
                if at < best or left < tight:
                    best, tight, chosen[0] = at, left, node
        return best, 1
    return _several(data.per, room, after, need, seconds, chosen)


@inner
def _several(  # noqa: PLR0912, one rule after the other
    per: int, room: Room, after: float, need: int, seconds: float, chosen: Ints
) -> tuple[float, int]:
    """Place a job on full nodes and the rest on one more."""
    full, rest = need // per, need % per
    whole, part, nodes = room.whole, room.part, len(room.count)
    at = after
    while True:
        for v in range(nodes):
            whole[v] = earliest(room, v, at, per, seconds)
            part[v] = earliest(room, v, at, rest, seconds) if rest else 0.0
        later = whole[argsort(whole, False)[full - 1]]
        if rest:
            later = max(later, part[argsort(part, False)[full]])
        if later <= at or later == np.inf:
            break
        at = later
    if later == np.inf:
        return np.inf, 0
    used, last, tight = 0, -1, per + 1
    if rest:
        # the part goes where least is free, and never on a node that has to be full
        spare = -full
        for v in range(nodes):
            spare += whole[v] <= at
        for v in range(nodes):
            if part[v] <= at and (whole[v] > at or spare > 0):
                left = idle_at(room, v, at)
                if left < tight:
                    last, tight = v, left
    for v in range(nodes):
        if whole[v] <= at and v != last and used < full:
            chosen[used] = v
            used += 1
    if rest:
        chosen[used] = last
        used += 1
    return at, used


@inner
def _block(data: Data, room: Room, after: float, need: int, seconds: float, chosen: Ints) -> tuple[float, int]:
    once, first, server = room.whole, data.block_first, data.server
    for v in range(len(once)):
        once[v] = earliest(room, v, after, 1, seconds)
    best, which = np.inf, -1
    for b in range(len(data.size)):
        if data.size[b] != need:
            continue
        at = after
        for i in range(first[b], first[b + 1]):
            at = max(at, once[server[i]])
        moved = True
        while moved and at < best:
            moved = False
            for i in range(first[b], first[b + 1]):
                later = earliest(room, server[i], at, 1, seconds)
                if later > at:
                    at, moved = later, True
        if at < best:
            best, which = at, b
    if which < 0:
        return np.inf, 0
    for i in range(need):
        chosen[i] = server[first[which] + i]
    return best, need


class Schedule(NamedTuple):
    """What is written of a schedule of n jobs with o options.

    Attributes:
        start: of each job, 0 if it is left out, (n,).
        option: that it runs with, -1 if it is left out, (n,).
        finish: when each option that was looked at would have ended, (o,).
        rows: job, node and GPUs of each part on a node, (3, r).
    """

    start: Floats
    option: Ints
    finish: Floats
    rows: Ints2


So = tuple[float, float, int]
"""Cost without constant, last completion, rows used."""


@kernel
def serial(
    order: Ints, wish: Ints, penalty: Floats, problem: Data, profiles: Room, made: Schedule, begin: int, end: int,
    so_far: So,
) -> So:  # fmt: skip
    """Place the jobs of `order` from `begin` up to `end`; return (cost without constant, last completion, rows used).

    A job whose wish is late takes the option that costs least: slope times its completion, or what it adds to the
    makespan, and its penalty. If all are late, or leaving it out costs less, it is left out. One that must run and
    cannot makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        wish: int64 (n,), an option, `LEFT_OUT`, `CHEAPEST`, or `EARLIEST`: the option that ends first.
        penalty: of each option, in the unit of the goal, float64 (o,).
        so_far: what it returned of those before `begin`, (0.0, 0.0, 0) at the beginning.
    """
    data, room = by_reference(problem), by_reference(profiles)
    cost, last, used = so_far
    if begin == 0:
        clear(room, data.per)
    for place in range(begin, end):
        j = order[place]
        best, at, nodes = chosen(data, room, j, wish[j], penalty, last, made.finish)
        made.option[j] = best
        if best < 0:
            made.start[j] = 0.0
            cost += data.price[j]
            if cost == np.inf:
                break
            continue
        finish = at + data.seconds[best]
        made.start[j] = at
        cost += data.slope[j] * finish
        last = max(last, finish)
        used = seat(data, room, j, best, at, nodes, made.rows, used)
    return cost, last, used


@inner
def chosen(
    data: Data, room: Room, job: int, wish: int, penalty: Floats, last: float, finish: Floats
) -> tuple[int, float, int]:
    """Return (option or -1, start, nodes) of a job beside those placed, see `serial`; its nodes are `room.chosen`."""
    price, slope = data.price[job], data.slope[job]
    if wish >= 0:
        at, nodes = find(data, room, job, wish, room.chosen)
        end = at + data.seconds[wish]
        if end <= data.due[wish]:
            if price < slope * end + (max(0.0, end - last) if data.makespan else 0.0):
                return -1, 0.0, 0
            return wish, at, nodes
    if wish == -1:
        return -1, 0.0, 0
    best, start, used, least = -1, 0.0, 0, np.inf if wish == -2 else price
    for o in range(data.first[job], data.first[job + 1]):
        t, k = find(data, room, job, o, room.spot)
        end = t + data.seconds[o]
        finish[o] = end
        if not end <= data.due[o]:
            continue
        value = end
        if wish != -2:
            value = slope * end + penalty[o]
            if data.makespan:
                value += max(0.0, end - last)
        if value < least or (best < 0 and price == np.inf):
            best, start, used, least = o, t, k, value
            keep(room, k)
    if wish == -2 and best >= 0 and price < slope * least + (max(0.0, least - last) if data.makespan else 0.0):
        return -1, 0.0, 0
    return best, start, used


@inner
def keep(room: Room, nodes: int) -> None:
    """Take what was looked at for the best."""
    for k in range(nodes):
        room.chosen[k] = room.spot[k]


@inner
def seat(data: Data, room: Room, job: int, option: int, at: float, nodes: int, rows: Ints2, used: int) -> int:
    """Take the nodes chosen for a job by an option, and write its rows; return how many there are then."""
    left = data.gpus[option]
    for k in range(nodes):
        taken = min(left, data.per)
        occupy(room, room.chosen[k], at, at + data.seconds[option], taken)
        if data.kind:
            rows[0, used], rows[1, used], rows[2, used] = job, room.chosen[k], taken
            used += 1
        left -= taken
    return used
