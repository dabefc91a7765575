"""List scheduling with prices: HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 2002) where all are zero; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Bools, Floats, Floats2, Ints, by_reference, lean, lean_kernel
from ...compiled.routines import pop, push
from .arrays import Arrays, Workroom
from .timing import arrival, clear, first_gap, occupy, sort_reads

HEAVIEST = 48
"""Groups that are looked at when packing."""


class ListState(NamedTuple):
    """The state of a list schedule; n ops, k devices, G groups.

    Attributes:
        where: device of each group, -1 without one, int64 (G,).
        load, done: seconds of the groups on each device, and of the ops that are in, float64 (k,).
        left: bytes left on each device, float64 (k,).
        home: zone of each bond, -1 without one, int64 (G,).
        next: groups by falling bytes as a chain, int64 (G + 1,): behind place i of `Arrays.heavy` comes place
            next[i + 1], first of all next[0]; those with a device leave it as `pack` passes.
        spare, tried: bytes that `pack` leaves, float64 (k,): without the group that is to be placed, and with it.
        seen: group for which a class of equal devices was last seen unused, int64 (k,).
        choice: devices that a group may go to, int64 (k,).
        pull: what edges of a group are worth on each device, float64 (k,).
        waiting: how much of what each op reads is not in yet, int64 (n,).
    """

    where: Ints
    load: Floats
    done: Floats
    left: Floats
    used: Bools
    home: Ints
    next: Ints
    spare: Floats
    tried: Floats
    seen: Ints
    choice: Ints
    pull: Floats
    waiting: Ints
    room: Workroom


def empty_state(a: Arrays, room: Workroom) -> ListState:
    """Return the state in which nothing is placed, with a room to schedule in."""
    groups, k = len(a.need), len(a.room)
    return ListState(
        np.full(groups, -1), np.zeros(k), np.zeros(k), a.room.copy(), np.zeros(k, np.bool_), np.full(groups, -1),
        np.arange(groups + 1), np.zeros(k), np.zeros(k), np.full(k, -1), np.zeros(k, np.int64), np.zeros(k),
        np.zeros(len(a.group), np.int64), room,
    )  # fmt: skip


@lean
def settle(a: Arrays, s: ListState, g: int, d: int) -> None:
    """Put group g, which has no device, on device d."""
    s.where[g] = d
    s.left[d] -= a.need[g]
    s.load[d] += a.work[d, g]
    s.used[d] = True
    if a.bond[g] >= 0:
        s.home[a.bond[g]] = a.zone[d]


@lean
def open_devices(a: Arrays, s: ListState, g: int, careful: bool) -> int:
    """Write into `choice` the devices that group g may go to, of equal unused ones the first; return how many.

    `careful`: whether only devices count after which best fit still packs the heaviest of the other groups, if there is
    such a device, and if it packs them with g left out.
    """
    choice, count = s.choice, 0
    for d in range(len(a.room)):
        if not np.isfinite(a.work[d, g]) or a.need[g] > s.left[d]:
            continue
        if not s.used[d]:
            if s.seen[a.twin[d]] == g:
                continue
            s.seen[a.twin[d]] = g
        choice[count] = d
        count += 1
    if a.bond[g] >= 0 and s.home[a.bond[g]] >= 0:
        kept = 0
        for i in range(count):
            d = choice[i]
            if a.zone[d] == s.home[a.bond[g]]:
                choice[i], choice[kept] = choice[kept], d
                kept += 1
        count = kept if kept else count
    if not careful or count < 2 or not pack(a, s, g, -1, s.spare):
        return count
    kept = 0
    for i in range(count):
        d = choice[i]
        if s.spare[d] >= a.need[g] or pack(a, s, g, d, s.tried):
            choice[i], choice[kept] = choice[kept], d
            kept += 1
    return kept if kept else count


@lean
def pack(a: Arrays, s: ListState, g: int, d: int, left: Floats) -> bool:
    """Return whether best fit finds room for the heaviest groups without a device but g; `left` gets the bytes left."""
    for x in range(len(left)):
        left[x] = s.left[x]
    if d >= 0:
        left[d] -= a.need[g]
    chain, before, seen = s.next, 0, 0
    while chain[before] < len(a.heavy) and seen < HEAVIEST:
        i = chain[before]
        h = a.heavy[i]
        if s.where[h] >= 0:
            chain[before] = chain[i + 1]
            continue
        before = i + 1
        if h == g:
            continue
        best = -1
        for x in range(len(left)):
            if left[x] >= a.need[h] and np.isfinite(a.work[x, h]) and (best < 0 or left[x] < left[best]):
                best = x
        if best < 0:
            return False
        left[best] -= a.need[h]
        seen += 1
    return True


COSTS = ("load", "backlog", "opens", "fill", "idle", "last", "moved")
"""What a device costs besides the end of the op, see `cost_of`."""
LOAD, BACKLOG, OPENS, FILL, IDLE, LAST, MOVED = range(len(COSTS))


class Prices(NamedTuple):
    """What the decoder is told; all zero is HEFT.

    Attributes:
        priority: added to the upward rank of each op, in mean ops, float64 (n,).
        costs: price of each of `COSTS` where the group of an op is placed as the op starts, in mean ops, float64
            (n, C).
        same: what it is worth, in mean ops, that the ends of an edge share a device, float64 (m,).
        near: the same for devices that are near one another, see `Arrays.near`, float64 (m,).
    """

    priority: Floats
    costs: Floats2
    same: Floats
    near: Floats


@lean_kernel
def build(arrays: Arrays, told: Prices, state: ListState, careful: bool) -> bool:
    """Place and schedule all ops; return whether memory sufficed. If not, the order of the room is a topological one.

    Of the ops that may come next the one with the highest rank and priority goes in first. The first op of a group
    takes the group to the device with the least cost: end of the op, prices of `COSTS`, less what the edges to groups
    on this device, and near it, are worth. `state`: an empty one; gets the plan.
    """
    a, prices, s = by_reference(arrays), by_reference(told), by_reference(state)
    room, waiting, size, n = s.room, s.waiting, 0, len(a.group)
    value, heap = room.key, room.heap
    clear(room)
    for v in range(n):
        value[v] = a.rank[v] / a.unit + prices.priority[v]
    for v in range(n):
        waiting[v] = a.before_first[v + 1] - a.before_first[v]
        if waiting[v] == 0:
            size = push(heap, size, v, value, a.topological)
    last = -1
    for i in range(n):
        v = heap[0]
        size = pop(heap, size, value, a.topological)
        room.order[i] = v
        sort_reads(a, room, v)
        g = a.group[v]
        if s.where[g] < 0:
            last = best_device(a, s, v, last, prices, careful)
            if last < 0:
                for x in range(n):  # a half of an order is none
                    room.order[x] = room.topological[x]
                return False
            settle(a, s, g, last)
        put(a, s, v)
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            waiting[w] -= 1
            if waiting[w] == 0:
                size = push(heap, size, w, value, a.topological)
    return True


@lean
def put(a: Arrays, s: ListState, v: int) -> None:
    """Schedule op v on the device of its group, in the first gap that holds it."""
    d, room = s.where[a.group[v]], s.room
    took, room.device[v] = a.seconds[d, v], d
    ready = arrival(a, room, v, d, True)
    at = first_gap(room.low[d], room.high[d], room.busy[d], ready, took)
    room.start[v], room.finish[v] = at, at + took
    room.busy[d] = occupy(room.low[d], room.high[d], room.busy[d], at, at + took)
    s.done[d] += took


@lean
def best_device(a: Arrays, s: ListState, v: int, last: int, prices: Prices, careful: bool) -> int:
    """Return the device with the least cost for the group of op v, its first, -1 if none has room for it.

    The device on which the latest of what v reads was made comes first: it is often the best, and then most others are
    seen to be no better by a bound.
    """
    g, choice, room = a.group[v], s.choice, s.room
    count = open_devices(a, s, g, careful)
    if count < 2:
        return int(choice[0]) if count else -1
    attract(a, s, g, prices)
    latest = -1
    for i in range(a.before_first[v], a.before_first[v + 1]):
        if latest < 0 or room.finish[a.before[i]] > room.finish[latest]:
            latest = a.before[i]
    for j in range(1, count):
        if latest >= 0 and choice[j] == room.device[latest]:
            choice[0], choice[j] = choice[j], choice[0]
    best, least = int(choice[0]), np.inf
    for j in range(count):
        cost = cost_of(a, s, v, choice[j], last, prices, latest, least)
        if cost < least:
            least, best = cost, int(choice[j])
    return best


@lean
def attract(a: Arrays, s: ListState, g: int, prices: Prices) -> None:
    """Write what the edges of group g to groups that are placed are worth on each device, float64 (k,)."""
    pull = s.pull
    for d in range(len(pull)):
        pull[d] = 0.0
    for i in range(a.edge_first[g], a.edge_first[g + 1]):
        there = s.where[a.other[i]]
        if there >= 0:
            pull[there] += prices.same[a.edge[i]]
            if prices.near[a.edge[i]] != 0.0:
                for d in range(len(pull)):
                    if a.near[d, there]:
                        pull[d] += prices.near[a.edge[i]]


@lean
def cost_of(a: Arrays, s: ListState, v: int, d: int, last: int, prices: Prices, latest: int, least: float) -> float:
    """Return what op v costs on device d, in mean ops; infinity once it is certain not to be below `least`.

    Of the `COSTS`, ``load`` is the work on d with the group of v, and ``backlog`` what of it is not scheduled yet, as
    shares of an even load; ``opens``, whether d is unused; ``fill``, the share of its memory in use; ``idle``, how long
    it would wait before v, and ``moved``, how long what v reads is on its way, in mean ops; ``last``, whether d took
    the last group.
    """
    g, took, room, price = a.group[v], a.seconds[d, v], s.room, prices.costs
    load = (s.load[d] + a.work[d, g]) / a.even
    fill = 1.0 - (s.left[d] - a.need[g]) / a.room[d] if np.isfinite(a.room[d]) and a.room[d] > 0 else 0.0
    known = price[v, LOAD] * load + price[v, BACKLOG] * (load - s.done[d] / a.even) + price[v, FILL] * fill - s.pull[d]
    if not s.used[d]:
        known += price[v, OPENS]
    if d == last:
        known += price[v, LAST]
    if price[v, IDLE] >= 0.0 and price[v, MOVED] >= 0.0:
        soon = room.finish[latest] + a.delay[a.level[d, room.device[latest]], latest] if latest >= 0 else 0.0
        if (soon + took) / a.unit + known >= least:
            return np.inf
    at = first_gap(room.low[d], room.high[d], room.busy[d], arrival(a, room, v, d, False), took)
    free = room.high[d, room.busy[d] - 1] if room.busy[d] else 0.0
    moved = 0.0
    for i in range(a.before_first[v], a.before_first[v + 1]):
        u = a.before[i]
        moved += a.delay[a.level[d, room.device[u]], u]
    end, idle = (at + took) / a.unit, max(0.0, at - free) / a.unit
    return float(end + known + price[v, IDLE] * idle + price[v, MOVED] * moved / a.unit)
