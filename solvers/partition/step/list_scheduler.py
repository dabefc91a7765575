"""List scheduling with prices: HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 2002) where all are zero; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Floats, Floats2, by_reference, lean, lean_kernel
from ...compiled.routines import pop, push
from .arrays import Arrays
from .list_state import ListState, open_devices, settle
from .timing import arrival, clear, first_gap, occupy, sort_reads

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
    on this device, and near it, are worth.

    Args:
        arrays, told: the problem, and what its ops and edges score.
        state: an empty one; gets the plan.
        careful: see `open_devices`.
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
