"""Compiled: schedules of lists.

Each job of a list starts as early as it fits, as it wishes or as costs least. When and where it fits a profile of each
node says: free GPUs between break points. A pool of counted GPUs is one node; a server of a RAMP cluster is a node of
one GPU.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil, void

if not cython.compiled:
    from ..native import Float, Floats, Int, Ints, Ints2

NEVER = declare(Float, float("inf"))
RAMP = declare(Int, 2)
"""The kind of capacity that has blocks, as `prepare` has it."""


@final
@cclass
class Data:
    """What kernels read of a `gangplan.solvers.schedule.prepare.PreparedJobs`, by the same names."""

    def __init__(self, p: Any) -> None:
        self.n, self.options, self.makespan = p.n, len(p.gpus), p.makespan
        self.kind, self.nodes, self.per = p.kind, p.nodes, p.per
        self.first, self.gpus, self.seconds, self.due = p.first, p.gpus, p.seconds, p.due
        self.release, self.slope, self.price = p.release, p.slope, p.price
        self.size, self.block_first, self.server = p.size, p.block_first, p.server


@final
@cclass
class Room:
    """What a schedule is built in, on m nodes; all of it is written to.

    Attributes:
        times, free, count: profiles of the nodes: break points, free GPUs from each on, (m, t), how many, (m,).
        chosen, spot: nodes of the best option and of one that is looked at.
        whole, part, sorted: when each node has room, and room to sort these, (m,).
    """

    def __init__(self, p: Any) -> None:
        self.nodes, self.width = p.nodes, 2 * p.n + 2
        times = np.full((self.nodes, self.width), np.inf)
        times[:, 0] = -np.inf
        self.times, self.free = times, np.full((self.nodes, self.width), p.per)
        self.count = np.ones(self.nodes, np.int64)
        self.chosen, self.spot = np.empty((2, p.total + 1), np.int64)
        self.whole, self.part, self.sorted = np.empty((3, self.nodes))


@final
@cclass
class Schedule:
    """What is written of a schedule of n jobs with o options; the arrays are the caller's.

    Attributes:
        start: of each job, 0 if it is left out, (n,).
        option: that it runs with, -1 if it is left out, (n,).
        finish: when each option that was looked at would have ended, (o,).
        rows: job, node and GPUs of each part on a node, (3, r).
    """

    def __init__(self, d: Data, start: Floats, option: Ints, finish: Floats, rows: Ints2) -> None:
        if len(start) != d.n or len(option) != d.n or len(finish) != d.options:
            raise ValueError(f"{len(start)} jobs with {len(finish)} options are not {d.n} with {d.options}")
        self.start, self.option, self.finish, self.rows = start, option, finish, rows


@cfunc
@nogil
def clear(r: Room, per: Int) -> void:
    """Empty the profiles."""
    for v in range(r.nodes):
        r.count[v] = 1
        r.free[v, 0] = per


@cfunc
@nogil
def _at(r: Room, node: Int, at: Float) -> Int:
    low: Int = 0
    high: Int = r.count[node] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if r.times[node, middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@cfunc
@nogil
def earliest(r: Room, node: Int, after: Float, need: Int, seconds: Float) -> Float:
    """Return when a node first has `need` GPUs free for so many seconds, not before `after`."""
    if seconds <= 0:
        return after
    at, count = after, r.count[node]
    k: Int = _at(r, node, after)
    while k < count and r.times[node, k] < at + seconds:
        if r.free[node, k] < need:
            if k + 1 == count:
                return NEVER
            at = r.times[node, k + 1]
        k += 1
    return at


@cfunc
@nogil
def occupy(r: Room, node: Int, start: Float, end: Float, need: Int) -> void:
    """Take GPUs of a node from `start` to `end`."""
    if end <= start:
        return
    a = _split(r, node, start)
    b = _split(r, node, end)
    for k in range(a, b):
        r.free[node, k] -= need


@cfunc
@nogil
def _split(r: Room, node: Int, at: Float) -> Int:
    n = r.count[node]
    low = _at(r, node, at)
    if r.times[node, low] == at:
        return low
    k: Int = n
    while k > low + 1:
        r.times[node, k] = r.times[node, k - 1]
        r.free[node, k] = r.free[node, k - 1]
        k -= 1
    r.times[node, low + 1] = at
    r.free[node, low + 1] = r.free[node, low]
    r.count[node] = n + 1
    return low + 1


@cfunc
@nogil
def find(d: Data, r: Room, job: Int, option: Int, chosen: Ints) -> tuple[Float, Int]:
    """Return (start, nodes) where a job fits first by an option; write its nodes to `chosen`, a part node last.

    Of nodes that are as early, a job on one takes that with the fewest free GPUs; of blocks the first.
    """
    after, need, seconds = d.release[job], d.gpus[option], d.seconds[option]
    if d.kind == RAMP:
        return _block(d, r, after, need, seconds, chosen)
    if need > d.per:
        return _several(d.per, r, after, need, seconds, chosen)
    best, tight = NEVER, need
    for node in range(r.nodes):
        at = earliest(r, node, after, need, seconds)
        if at < best or (at == best and at < NEVER):
            left = r.free[node, _at(r, node, at)]
            if at < best or left < tight:
                best, tight, chosen[0] = at, left, node
    return best, 1


@cfunc
@nogil
def _several(  # noqa: PLR0912, one rule after the other
    per: Int, r: Room, after: Float, need: Int, seconds: Float, chosen: Ints
) -> tuple[Float, Int]:
    """Place a job on full nodes and the rest on one more."""
    full, rest = need // per, need % per
    at: Float = after
    later: Float = after
    while True:
        for v in range(r.nodes):
            r.whole[v] = earliest(r, v, at, per, seconds)
            r.part[v] = earliest(r, v, at, rest, seconds) if rest else 0.0
        later = _smallest(r, r.whole, full - 1)
        if rest:
            later = max(later, _smallest(r, r.part, full))
        if later <= at or later == NEVER:
            break
        at = later
    if later == NEVER:
        return NEVER, 0
    used: Int = 0
    last: Int = -1
    if rest:
        # the part goes where least is free, and never on a node that has to be full
        spare: Int = -full
        tight: Int = per + 1
        for v in range(r.nodes):
            if r.whole[v] <= at:
                spare += 1
        for v in range(r.nodes):
            if r.part[v] <= at and (r.whole[v] > at or spare > 0):
                left = r.free[v, _at(r, v, at)]
                if left < tight:
                    last, tight = v, left
    for v in range(r.nodes):
        if r.whole[v] <= at and v != last and used < full:
            chosen[used] = v
            used += 1
    if rest:
        chosen[used] = last
        used += 1
    return at, used


@cfunc
@nogil
def _smallest(r: Room, values: Floats, k: Int) -> Float:
    """Return the value of the nodes that k others come before, by quickselect (Hoare 1961)."""
    low: Int = 0
    high: Int = r.nodes - 1
    for v in range(r.nodes):
        r.sorted[v] = values[v]
    while low < high:
        pivot = r.sorted[(low + high) // 2]
        i: Int = low
        j: Int = high
        while i <= j:
            while r.sorted[i] < pivot:
                i += 1
            while pivot < r.sorted[j]:
                j -= 1
            if i <= j:
                r.sorted[i], r.sorted[j] = r.sorted[j], r.sorted[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return r.sorted[k]


@cfunc
@nogil
def _block(d: Data, r: Room, after: Float, need: Int, seconds: Float, chosen: Ints) -> tuple[Float, Int]:
    for v in range(r.nodes):
        r.whole[v] = earliest(r, v, after, 1, seconds)
    best: Float = NEVER
    which: Int = -1
    for b in range(len(d.size)):
        if d.size[b] != need:
            continue
        at: Float = after
        for i in range(d.block_first[b], d.block_first[b + 1]):
            at = max(at, r.whole[d.server[i]])
        moved: bint = True
        while moved and at < best:
            moved = False
            for i in range(d.block_first[b], d.block_first[b + 1]):
                later = earliest(r, d.server[i], at, 1, seconds)
                if later > at:
                    at = later
                    moved = True
        if at < best:
            best = at
            which = b
    if which < 0:
        return NEVER, 0
    for i in range(need):
        chosen[i] = d.server[d.block_first[which] + i]
    return best, need


def serial(
    d: Data, r: Room, made: Schedule, order: Ints, wish: Ints, penalty: Floats, begin: Int, end: Int, cost: Float,
    last: Float, used: Int,
) -> tuple[float, float, int]:  # fmt: skip
    """Place the jobs of `order` from `begin` up to `end`; return (cost without constant, last completion, rows used).

    A job whose wish is late takes the option that costs least: slope times its completion, or what it adds to the
    makespan, and its penalty. If all are late, or leaving it out costs less, it is left out. One that must run and
    cannot makes the cost inf.

    Args:
        d: the problem.
        r: what it is built in.
        made: what it becomes.
        order: int64 (n,), jobs.
        wish: int64 (n,), an option, `LEFT_OUT`, `CHEAPEST`, or `EARLIEST`: the option that ends first.
        penalty: of each option, in the unit of the goal, float64 (o,).
        begin, end: places of `order`.
        cost, last, used: what it returned of those before `begin`; zeros at the beginning.
    """
    if len(order) != d.n or len(wish) != d.n or len(penalty) != d.options or begin < 0 or end > d.n or used < 0:
        raise ValueError(f"{len(order)} jobs with {len(penalty)} options are not {d.n} with {d.options}")
    for place in range(begin, end):
        if not (0 <= order[place] < d.n and wish[order[place]] < d.options):
            raise ValueError(f"no job {order[place]} of {d.n}, or no option that it may wish")
    with nogil:
        if begin == 0:
            clear(r, d.per)
        for place in range(begin, end):
            j = order[place]
            best, at, nodes = chosen(d, r, j, wish[j], penalty, last, made.finish)
            made.option[j] = best
            if best < 0:
                made.start[j] = 0.0
                cost += d.price[j]
                if cost == NEVER:
                    break
                continue
            finish = at + d.seconds[best]
            made.start[j] = at
            cost += d.slope[j] * finish
            last = max(last, finish)
            used = seat(d, r, j, best, at, nodes, made.rows, used)
    return cost, last, used


@cfunc
@nogil
def chosen(
    d: Data, r: Room, job: Int, wish: Int, penalty: Floats, last: Float, finish: Floats
) -> tuple[Int, Float, Int]:
    """Return (option or -1, start, nodes) of a job beside those placed, see `serial`; its nodes are `r.chosen`."""
    price, slope = d.price[job], d.slope[job]
    if wish >= 0:
        at, nodes = find(d, r, job, wish, r.chosen)
        end = at + d.seconds[wish]
        if end <= d.due[wish]:
            if price < slope * end + (max(0.0, end - last) if d.makespan else 0.0):
                return -1, 0.0, 0
            return wish, at, nodes
    if wish == -1:
        return -1, 0.0, 0
    best: Int = -1
    start: Float = 0.0
    used: Int = 0
    least: Float = NEVER if wish == -2 else price
    for o in range(d.first[job], d.first[job + 1]):
        at, nodes = find(d, r, job, o, r.spot)
        end = at + d.seconds[o]
        finish[o] = end
        if not end <= d.due[o]:
            continue
        value = end
        if wish != -2:
            value = slope * end + penalty[o]
            if d.makespan:
                value += max(0.0, end - last)
        if value < least or (best < 0 and price == NEVER):
            best, start, used, least = o, at, nodes, value
            for k in range(nodes):
                r.chosen[k] = r.spot[k]
    if wish == -2 and best >= 0 and price < slope * least + (max(0.0, least - last) if d.makespan else 0.0):
        return -1, 0.0, 0
    return best, start, used


@cfunc
@nogil
def seat(d: Data, r: Room, job: Int, option: Int, at: Float, nodes: Int, rows: Ints2, used: Int) -> Int:
    """Take the nodes chosen for a job by an option, and write its rows; return how many there are then."""
    left = d.gpus[option]
    for k in range(nodes):
        taken = min(left, d.per)
        occupy(r, r.chosen[k], at, at + d.seconds[option], taken)
        if d.kind:
            rows[0, used], rows[1, used], rows[2, used] = job, r.chosen[k], taken
            used += 1
        left -= taken
    return used


def settle(r: Room, parts: Ints2, after: Float, seconds: Float, due: Float) -> float:
    """Start a run as soon as all its parts, (node, GPUs), are free; return when; inf, and take nothing, if it is late.

    Args:
        r: where runs are so far, up to as many as there are jobs.
        parts: int64 (k, 2).
        after: seconds before which it does not start.
        seconds, due: how long it takes, and when it is over at the latest.
    """
    for i in range(parts.shape[0]):
        if not 0 <= parts[i, 0] < r.nodes or r.count[parts[i, 0]] + 2 > r.width:
            raise ValueError(f"no node {parts[i, 0]} of {r.nodes}, or no room on it for one more")
    at: Float = after
    before: Float = -NEVER
    with nogil:
        while at > before:
            before = at
            for i in range(parts.shape[0]):
                at = max(at, earliest(r, parts[i, 0], at, parts[i, 1], seconds))
        if not at + seconds <= due:
            at = NEVER
        else:
            for i in range(parts.shape[0]):
                occupy(r, parts[i, 0], at, at + seconds, parts[i, 1])
    return at
