"""List scheduling with prices: HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 2002) where all are zero; compiled."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from cython.cimports.libc.math import isfinite
from numpy.typing import NDArray

if not cython.compiled:
    from ...native import Float, Floats, Int, Ints
    from .arrays import StepArrays, within
    from .timing import Workroom, arrival, clear, sort_reads

    LOAD, BACKLOG, OPENS, FILL, IDLE, LAST, MOVED = range(7)
    """In the order of `COSTS`."""

HEAVIEST = declare(Int, 48)
"""Groups that are looked at when packing."""
NEVER = declare(Float, float("inf"))
COSTS = ("load", "backlog", "opens", "fill", "idle", "last", "moved")
"""What a device costs besides the end of the op: ``load`` is the work on it with the group of the op, and ``backlog``
what of it is not scheduled yet, as shares of an even load; ``opens``, whether it is unused; ``fill``, the share of its
memory in use; ``idle``, how long it would wait before the op, and ``moved``, how long what the op reads is on its way,
in mean ops; ``last``, whether it took the last group."""


@final
@cclass
class ListState:
    """The state of a list schedule, in which nothing is placed at first; n ops, m edges, k devices, G groups.

    Attributes:
        where: device of each group, -1 without one, (G,).
        load, done: seconds of the groups on each device, and of the ops that are in, (k,).
        left, used: bytes left on each device, and whether it has a group, (k,).
        bond: groups of one bond, if it is not -1, go to one zone if they can, (G,).
        home: zone of each bond, -1 without one, (G,).
        next: groups by falling bytes as a chain, (G + 1,): behind place i of `StepArrays.heavy` comes place
            next[i + 1], first of all next[0]; those with a device leave it as `_pack` passes.
        rest: bytes that `_pack` leaves without the group that is to be placed, and with it, (2, k).
        seen: group for which a class of equal devices was last seen unused, (k,).
        choice: devices that a group may go to, (k,).
        pull: what edges of a group are worth on each device, (k,).
        waiting: how much of what each op reads is not in yet, (n,).
        priority: added to the upward rank of each op, in mean ops, (n,).
        costs: price of each of `COSTS`, in mean ops, (C,).
        same, near: what it is worth, in mean ops, that the ends of an edge share a device, and that they are near one
            another, see `StepArrays.near`, (m,).
    """

    def __init__(self, room: Workroom, a: StepArrays, prices: Any, bond: Any = None) -> None:
        """Begin in a room of the problem, or of that whose groups were joined."""
        groups, k, edges, of = a.groups, a.devices, len(a.after), room.arrays
        shape, wanted = tuple(map(len, prices)), (a.ops, len(COSTS), edges, edges)
        if shape != wanted or (a.ops, k, edges) != (of.ops, of.devices, len(of.after)):
            raise ValueError(f"prices {shape} in a room for {of.ops} ops are not of {a.ops} ops and {edges} edges")
        self.room, self.arrays = room, a
        self.priority, self.costs, self.same, self.near = prices
        self.where, self.home, none = np.full((3, groups), -1)
        self.bond = none if bond is None else bond
        if bond is not None and (len(bond) != groups or not within(self.bond, groups)):
            raise ValueError(f"{len(bond)} bonds up to {max(bond)} are not those of {groups} groups")
        self.load, self.done, self.pull = np.zeros((3, k))
        self.left, self.rest, self.used = np.array(a.room), np.zeros((2, k)), np.zeros(k, np.uint8)
        self.seen, self.choice = np.full((2, k), -1)
        self.next, self.waiting = np.arange(groups + 1), np.zeros(a.ops, np.int64)


def build(s: ListState, careful: bint) -> bool:
    """Place and schedule all ops; return whether memory sufficed. If not, the order of the room is a topological one.

    Of the ops that may come next the one with the highest rank and priority goes in first. The first op of a group
    takes the group to the device with the least cost: end of the op, prices of `COSTS`, less what the edges to groups
    on this device, and near it, are worth.

    Args:
        s: an empty one; gets the plan.
        careful: whether only devices count after which best fit still packs the heaviest of the other groups, if there
            is such a device, and if it packs them with the group left out.
    """
    with nogil:
        fits = _build(s.arrays, s, careful)
    return fits


def _build(a: StepArrays, s: ListState, careful: bint) -> bool:
    clear(s.room)
    s.room.by_key.size = 0
    for v in range(a.ops):
        s.room.key[v] = a.rank[v] / a.unit + s.priority[v]
    for v in range(a.ops):
        s.waiting[v] = a.before_first[v + 1] - a.before_first[v]
        if s.waiting[v] == 0:
            s.room.by_key.push(v)
    last: Int = -1
    for i in range(a.ops):
        v = s.room.by_key.pop()
        s.room.order[i] = v
        sort_reads(a, s.room, v)
        if s.where[a.group[v]] < 0:
            last = _best_device(a, s, v, last, careful)
            if last < 0:
                for j in range(a.ops):  # a half of an order is none
                    s.room.order[j] = s.room.topological[j]
                return False
            _settle(a, s, a.group[v], last)
        _put(a, s, v)
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            s.waiting[w] -= 1
            if s.waiting[w] == 0:
                s.room.by_key.push(w)
    return True


def _settle(a: StepArrays, s: ListState, g: Int, d: Int) -> None:
    """Put group g, which has no device, on device d."""
    s.where[g] = d
    s.left[d] -= a.need[g]
    s.load[d] += a.work[d, g]
    s.used[d] = True
    if s.bond[g] >= 0:
        s.home[s.bond[g]] = a.zone[d]


def _open_devices(a: StepArrays, s: ListState, g: Int, careful: bint) -> Int:
    """Write into `choice` the devices that group g may go to, of equal unused ones the first; return how many."""
    count: Int = 0
    for d in range(a.devices):
        if not isfinite(a.work[d, g]) or a.need[g] > s.left[d]:
            continue
        if not s.used[d]:
            if s.seen[a.twin[d]] == g:
                continue
            s.seen[a.twin[d]] = g
        s.choice[count] = d
        count += 1
    kept: Int = 0
    if s.bond[g] >= 0 and s.home[s.bond[g]] >= 0:
        for i in range(count):
            d = s.choice[i]
            if a.zone[d] == s.home[s.bond[g]]:
                s.choice[i], s.choice[kept] = s.choice[kept], d
                kept += 1
        count = kept if kept else count
    if not careful or count < 2 or not _pack(a, s, g, -1):
        return count
    kept = 0
    for i in range(count):
        d = s.choice[i]
        if s.rest[0, d] >= a.need[g] or _pack(a, s, g, d):
            s.choice[i], s.choice[kept] = s.choice[kept], d
            kept += 1
    return kept if kept else count


def _pack(a: StepArrays, s: ListState, g: Int, d: Int) -> bool:
    """Return whether best fit finds room for the heaviest groups without a device but g, with g on d unless d is -1."""
    row: Int = 1 if d >= 0 else 0
    for x in range(a.devices):
        s.rest[row, x] = s.left[x]
    if d >= 0:
        s.rest[row, d] -= a.need[g]
    before: Int = 0
    seen: Int = 0
    while s.next[before] < a.groups and seen < HEAVIEST:
        i = s.next[before]
        h = a.heavy[i]
        if s.where[h] >= 0:
            s.next[before] = s.next[i + 1]
            continue
        before = i + 1
        if h == g:
            continue
        best: Int = -1
        least: Float = NEVER
        need = a.need[h]
        for x in range(a.devices):
            rest = s.rest[row, x]
            if need <= rest and (best < 0 or rest < least) and isfinite(a.work[x, h]):
                best, least = x, rest
        if best < 0:
            return False
        s.rest[row, best] = least - need
        seen += 1
    return True


def _put(a: StepArrays, s: ListState, v: Int) -> None:
    """Schedule op v on the device of its group, in the first gap that holds it."""
    d = s.where[a.group[v]]
    took = a.seconds[d, v]
    s.room.device[v] = d
    at = s.room.devices.first(d, arrival(a, s.room, v, d, True), took)
    s.room.start[v], s.room.finish[v] = at, at + took
    s.room.devices.take(d, at, at + took)
    s.done[d] += took


def _best_device(a: StepArrays, s: ListState, v: Int, last: Int, careful: bint) -> Int:
    """Return the device with the least cost for the group of op v, its first, -1 if none has room for it.

    The device on which the latest of what v reads was made comes first: it is often the best, and then most others are
    seen to be no better by a bound.
    """
    count = _open_devices(a, s, a.group[v], careful)
    if count < 2:
        return s.choice[0] if count else -1
    _attract(a, s, a.group[v])
    latest: Int = -1
    for i in range(a.before_first[v], a.before_first[v + 1]):
        if latest < 0 or s.room.finish[a.before[i]] > s.room.finish[latest]:
            latest = a.before[i]
    for j in range(1, count):
        if latest >= 0 and s.choice[j] == s.room.device[latest]:
            s.choice[0], s.choice[j] = s.choice[j], s.choice[0]
    best: Int = s.choice[0]
    least: Float = NEVER
    for j in range(count):
        cost = _cost(a, s, v, s.choice[j], last, latest, least)
        if cost < least:
            least, best = cost, s.choice[j]
    return best


def _attract(a: StepArrays, s: ListState, g: Int) -> None:
    """Write what the edges of group g to groups that are placed are worth on each device."""
    for d in range(a.devices):
        s.pull[d] = 0.0
    for i in range(a.edge_first[g], a.edge_first[g + 1]):
        there, e = s.where[a.other[i]], a.edge[i]
        if there >= 0:
            s.pull[there] += s.same[e]
            if s.near[e] != 0.0:
                for d in range(a.devices):
                    if a.near[d, there]:
                        s.pull[d] += s.near[e]


def _cost(a: StepArrays, s: ListState, v: Int, d: Int, last: Int, latest: Int, least: Float) -> Float:
    """Return what op v costs on device d, in mean ops; infinity once it is certain not to be below `least`."""
    g, took = a.group[v], a.seconds[d, v]
    load = (s.load[d] + a.work[d, g]) / a.even
    fill = 1.0 - (s.left[d] - a.need[g]) / a.room[d] if isfinite(a.room[d]) and a.room[d] > 0 else 0.0
    known: Float = s.costs[LOAD] * load + s.costs[BACKLOG] * (load - s.done[d] / a.even) + s.costs[FILL] * fill
    known -= s.pull[d]
    if not s.used[d]:
        known += s.costs[OPENS]
    if d == last:
        known += s.costs[LAST]
    if s.costs[IDLE] >= 0.0 and s.costs[MOVED] >= 0.0:
        soon: Float = 0.0
        if latest >= 0:
            soon = s.room.finish[latest] + a.delay[a.level[d, s.room.device[latest]], latest]
        if (soon + took) / a.unit + known >= least:
            return NEVER
    at = s.room.devices.first(d, arrival(a, s.room, v, d, False), took)
    moved: Float = 0.0
    for i in range(a.before_first[v], a.before_first[v + 1]):
        u = a.before[i]
        moved += a.delay[a.level[d, s.room.device[u]], u]
    count = s.room.devices.count[d]
    free = s.room.devices.high[d, count - 1] if count else 0.0
    idle: Float = max(0.0, at - free) / a.unit
    return (at + took) / a.unit + known + s.costs[IDLE] * idle + s.costs[MOVED] * moved / a.unit


def union(
    source: Ints, target: Ints, order: Ints, held: Floats, seconds: Floats, memory: Float, load: Float
) -> NDArray[np.int64]:
    """Return a root for each group, those of the edges in `order` joined while they stay within the limits, (G,).

    Args:
        source, target: groups of the ends of each edge, int64 (m,).
        order: edges, int64.
        held, seconds: bytes and seconds of each group, then of all that have this root, float64 (G,).
        memory, load: what these may reach.
    """
    groups, edges, found = len(held), len(source), np.arange(len(held))
    fits = len(target) == edges and len(seconds) == groups and within(order, edges)
    if not fits or not within(source, groups) or not within(target, groups):
        raise ValueError(f"{len(order)} edges of {edges}, and {len(target)} ends, are not of {groups} groups")
    root: Ints = found
    with nogil:
        for i in range(len(order)):
            x: Int = _root(root, source[order[i]])
            y: Int = _root(root, target[order[i]])
            if x != y and held[x] + held[y] <= memory and seconds[x] + seconds[y] <= load:
                root[y] = x
                held[x] += held[y]
                seconds[x] += seconds[y]
        for i in range(groups):
            root[i] = _root(root, i)
    return found


def _root(root: Ints, x: Int) -> Int:
    while root[x] != x:
        root[x] = root[root[x]]
        x = root[x]
    return x
