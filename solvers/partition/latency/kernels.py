"""Compiled: plans of calls and hosts under change, and annealing over them; letters are those of docs/latency.md.

A move takes some items of a call, or of the hosts, to the slot of a neighbour, to a host or to an idle accelerator:
one by itself, a few next to one another, or an item with all before it, or behind it, in its call, which brings no
circle. Seconds and bytes of a slot follow each move; when calls and items on hosts run is computed anew.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil, void
from cython.cimports.libc.math import isfinite, log
from numpy.typing import NDArray

from gangplan.instances.graph import grouped
from gangplan.instances.verify import TOLERANCE

from ...native import Random

if not cython.compiled:
    from ...native import Float, Int, Ints

BUNCH = declare(Int, 6)
"""Items next to one another that move at most."""
ALL = declare(Float, 0.01)
"""How often a whole slot moves to another."""
BOTH = declare(Float, 0.02)
"""How often the contents of two slots are exchanged."""
ANY = declare(Float, 0.15)
"""How often a slot is any."""
FAR = declare(Int, 4)
"""Items on a way to one that is in another slot."""
NEVER = declare(Float, float("inf"))


@final
@cclass
class LatencyArrays:
    """A problem of I items in G groups, S slots and N nets; ``x_first`` says where the part of each begins in ``x``.

    Attributes:
        groups, items, slots: G, I and S.
        kind, host: device type of each slot, and 1 if it is a host, int64 (S,).
        room: bytes of each slot, float64 (S,).
        time: seconds of each item on each type, float64 (T, I).
        group_time, memory: of each group, float64 (T, G) and (G,).
        group: of each item, int64 (I,).
        member_first, member: items of each group.
        before_first, before, after_first, after: items before and after each item.
        size, cost: items of each net, and seconds to move it, (N,).
        net_first, net: nets of each item.
    """

    def __init__(self, r: Any) -> None:
        """Copy the arrays of a problem."""
        self.groups, self.items, self.slots = len(r.groups), r.n_items, len(r.slots)
        self.kind = np.array([slot.kind for slot in r.slots], np.int64)
        self.host = np.array([slot.host for slot in r.slots], np.int64)
        self.room = np.array([slot.capacity for slot in r.slots]) * (1 + TOLERANCE)
        self.time, self.group_time = np.ascontiguousarray(r.time), np.ascontiguousarray(r.group_time)
        self.memory, self.group = np.ascontiguousarray(r.group_memory), r.group_of.astype(np.int64)
        before, after = r.neighbours
        self.member_first, self.member = _flat(r.groups)
        self.before_first, self.before = _flat(before)
        self.after_first, self.after = _flat(after)
        pins = [sorted({a, *others}) for a, others, _ in r.nets]
        self.size = np.array([len(pin) for pin in pins], np.int64)
        self.cost = np.array([cost for _, _, cost in r.nets], np.float64)
        self.net_first, self.net = _flat(grouped([(v, e) for e, pin in enumerate(pins) for v in pin], r.n_items))


def _flat(parts: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = np.concatenate([[0], np.cumsum([len(x) for x in parts])]).astype(np.int64)
    return first, np.array([v for x in parts for v in x], np.int64)


@final
@cclass
class LatencyState:
    """Where a search is.

    Attributes:
        slot: of each group, int64 (G,).
        load, used: seconds of the call in each slot, and bytes, float64 (S,).
        inside: items of each net in each slot, int64 (N, S).
        moved, came_from: groups that a move has moved, and their slots before, int64 (G,).
        finish, waits: when each call, then each item on a host, is done, and how many it still waits for, (S + I,).
        queue: calls and items on hosts that wait for nobody, int64 (S + I,).
        top, below: first item of each call, and the next one of each item, int64 (S,) and (I,).
    """

    def __init__(self, d: LatencyArrays, slots: list[int]) -> None:
        """Be at a plan; what follows from the plan is counted by whoever goes on."""
        if len(slots) != d.groups or (slots and not 0 <= min(slots) <= max(slots) < d.slots):
            raise ValueError(f"{len(slots)} groups in {d.slots} slots are no plan of {d.groups}")
        units = d.slots + d.items
        self.slot, self.inside = np.array(slots, np.int64), np.zeros((len(d.size), d.slots), np.int64)
        self.load, self.used = np.zeros((2, d.slots))
        self.moved, self.came_from = np.zeros((2, d.groups), np.int64)
        self.waits, self.queue = np.zeros((2, units), np.int64)
        self.finish, self.top, self.below = np.zeros(units), np.zeros(d.slots, np.int64), np.zeros(d.items, np.int64)


def anneal(
    d: LatencyArrays, p: LatencyState, best: Ints, least: Float, hot: Float, cold: Float, moves: Int, seed: Int
) -> float:
    """Try moves from a plan, which changes; return the latency of the best, seconds, and put that into `best`.

    Args:
        best: the slots of the best plan so far, int64 (G,).
        least: its latency, seconds.
        hot, cold: the first and the last temperature, as shares of `least`.
    """
    if len(best) != d.groups:
        raise ValueError(f"{len(best)} groups are no plan of {d.groups}")
    random = Random(seed)
    with nogil:
        least = _anneal(d, p, best, least, hot, cold, moves, random)
    return least


@cfunc
@nogil
def _anneal(
    d: LatencyArrays, p: LatencyState, best: Ints, least: Float, hot: Float, cold: Float, moves: Int, random: Random
) -> Float:
    _count(d, p)
    now = _latency(d, p)
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for _ in range(moves):
        heat *= step
        some = _move(d, p, random)
        if some == 0:
            continue
        new = NEVER if _full(d, p, some) else _latency(d, p)
        if new <= now or (new < NEVER and new - now < -heat * least * log(random.uniform())):
            now = new
            if now < least * (1 - 1e-9):
                least = now
                for g in range(d.groups):
                    best[g] = p.slot[g]
        else:
            _back(d, p, some)
    return least


@cfunc
@nogil
def _count(d: LatencyArrays, p: LatencyState) -> void:
    for e in range(len(d.size)):
        for s in range(d.slots):
            p.inside[e, s] = 0
    for s in range(d.slots):
        p.load[s] = p.used[s] = 0.0
    for g in range(d.groups):
        s = p.slot[g]
        p.slot[g] = -1
        _put(d, p, g, s)


@cfunc
@nogil
def _put(d: LatencyArrays, p: LatencyState, g: Int, to: Int) -> void:
    here = p.slot[g]
    p.slot[g] = to
    if here >= 0:
        p.load[here] -= d.group_time[d.kind[here], g]
        p.used[here] -= d.memory[g]
    p.load[to] += d.group_time[d.kind[to], g]
    p.used[to] += d.memory[g]
    for i in range(d.member_first[g], d.member_first[g + 1]):
        v = d.member[i]
        for j in range(d.net_first[v], d.net_first[v + 1]):
            e = d.net[j]
            size, cost = d.size[e], d.cost[e]
            if here >= 0:
                if p.inside[e, here] == size:
                    p.load[here] += cost
                p.inside[e, here] -= 1
                if p.inside[e, here] == 0 and size > 1:
                    p.load[here] -= cost
            if p.inside[e, to] == 0 and size > 1:
                p.load[to] += cost
            p.inside[e, to] += 1
            if p.inside[e, to] == size and size > 1:
                p.load[to] -= cost


@cfunc
@nogil
def _full(d: LatencyArrays, p: LatencyState, some: Int) -> bint:
    for i in range(some):
        s = p.slot[p.moved[i]]
        if p.used[s] > d.room[s]:
            return True
    return False


@cfunc
@nogil
def _take(d: LatencyArrays, p: LatencyState, some: Int, g: Int, to: Int) -> Int:
    """Move a group and note it; return how many have moved, 0 less one if it cannot run there."""
    if not isfinite(d.group_time[d.kind[to], g]):
        return -1
    p.moved[some], p.came_from[some] = g, p.slot[g]
    _put(d, p, g, to)
    return some + 1


@cfunc
@nogil
def _back(d: LatencyArrays, p: LatencyState, some: Int) -> Int:
    for i in range(some - 1, -1, -1):
        _put(d, p, p.moved[i], p.came_from[i])
    return 0


@cfunc
@nogil
def _move(d: LatencyArrays, p: LatencyState, random: Random) -> Int:
    v, slots, way = random.below(d.items), d.slots, random.uniform()
    g = d.group[v]
    here = p.slot[g]
    if way < ALL + BOTH:
        to = random.below(slots)
        return 0 if to == here else _exchange(d, p, here, to, way < BOTH)
    back: bint = random.uniform() < 0.5
    to = _target(d, p, v, here, back, random)
    if to < 0 or to == here:
        return 0
    some = _take(d, p, 0, g, to)
    if some < 0:
        return 0
    if random.uniform() < 0.5:
        return _closure(d, p, some, here, to, back)
    return _bunch(d, p, some, v, here, to, random)


@cfunc
@nogil
def _exchange(d: LatencyArrays, p: LatencyState, here: Int, to: Int, both: bint) -> Int:
    """Move everything of a slot to another one, and of that to the first if `both`."""
    some = 0
    for g in range(d.groups):
        s = p.slot[g]
        if s == here or (both and s == to):
            some = _take(d, p, some, g, to if s == here else here) if some >= 0 else some
            if some < 0:
                break
    return some


@cfunc
@nogil
def _beside(d: LatencyArrays, v: Int, back: bint, random: Random) -> Int:
    if back:
        first, count = d.before_first[v], d.before_first[v + 1] - d.before_first[v]
        return d.before[first + random.below(count)] if count else -1
    first, count = d.after_first[v], d.after_first[v + 1] - d.after_first[v]
    return d.after[first + random.below(count)] if count else -1


@cfunc
@nogil
def _target(d: LatencyArrays, p: LatencyState, v: Int, here: Int, back: bint, random: Random) -> Int:
    """Return the slot of a neighbour before or behind, or sometimes any: a host, an idle accelerator."""
    if random.uniform() < ANY:
        return random.below(d.slots)
    for _ in range(FAR):
        v = _beside(d, v, back, random)
        if v < 0:
            return -1
        s = p.slot[d.group[v]]
        if s != here:
            return s
    return -1


@cfunc
@nogil
def _closure(d: LatencyArrays, p: LatencyState, some: Int, here: Int, to: Int, back: bint) -> Int:
    """Move all before the groups moved that are in their slot, or all behind them."""
    at = 0
    while at < some:
        g = p.moved[at]
        at += 1
        for i in range(d.member_first[g], d.member_first[g + 1]):
            v = d.member[i]
            first = d.before_first[v] if back else d.after_first[v]
            last = d.before_first[v + 1] if back else d.after_first[v + 1]
            for j in range(first, last):
                h = d.group[d.before[j] if back else d.after[j]]
                if p.slot[h] == here:
                    new = _take(d, p, some, h, to)
                    if new < 0:
                        return _back(d, p, some)
                    some = new
    return some


@cfunc
@nogil
def _bunch(d: LatencyArrays, p: LatencyState, some: Int, v: Int, here: Int, to: Int, random: Random) -> Int:
    """Move a few more groups of the slot, each next to the one before."""
    for _ in range(random.below(BUNCH)):
        v = _beside(d, v, random.uniform() < 0.5, random)
        if v < 0 or p.slot[d.group[v]] != here:
            break
        new = _take(d, p, some, d.group[v], to)
        if new < 0:
            return _back(d, p, some)
        some = new
    return some


@cfunc
@nogil
def _unit(d: LatencyArrays, p: LatencyState, v: Int) -> Int:
    s = p.slot[d.group[v]]
    return d.slots + v if d.host[s] else s


@cfunc
@nogil
def _latency(d: LatencyArrays, p: LatencyState) -> Float:
    """Return when the last call or item on a host (unit S + v) is done, infinite if calls wait in a circle."""
    units, slots, last, at = _units(d, p), d.slots, 0.0, 0
    size = _ready(d, p)
    while at < size:
        unit = p.queue[at]
        at += 1
        v = unit - slots if unit >= slots else p.top[unit]
        p.finish[unit] += d.time[d.kind[p.slot[d.group[v]]], v] if unit >= slots else p.load[unit]
        last = max(last, p.finish[unit])
        while v >= 0:
            for j in range(d.after_first[v], d.after_first[v + 1]):
                other = _unit(d, p, d.after[j])
                if other != unit:
                    p.finish[other] = max(p.finish[other], p.finish[unit])
                    p.waits[other] -= 1
                    if p.waits[other] == 0:
                        p.queue[size] = other
                        size += 1
            v = -1 if unit >= slots else p.below[v]
    return last if size == units else NEVER


@cfunc
@nogil
def _units(d: LatencyArrays, p: LatencyState) -> Int:
    """List the items of each call, count for how many others each unit waits, and return how many units there are."""
    slots = d.slots
    units: Int = 0
    for s in range(slots):
        p.top[s], p.waits[s], p.finish[s] = -1, 0, 0.0
    for v in range(d.items - 1, -1, -1):
        s, own = p.slot[d.group[v]], _unit(d, p, v)
        if own < slots:
            if p.top[s] < 0:
                units += 1
            p.below[v], p.top[s] = p.top[s], v
        else:
            units += 1
            p.waits[own], p.finish[own] = 0, 0.0
        for j in range(d.before_first[v], d.before_first[v + 1]):
            if _unit(d, p, d.before[j]) != own:
                p.waits[own] += 1
    return units


@cfunc
@nogil
def _ready(d: LatencyArrays, p: LatencyState) -> Int:
    size, slots = 0, d.slots
    for s in range(slots):
        if p.top[s] >= 0 and p.waits[s] == 0:
            p.queue[size] = s
            size += 1
    for v in range(d.items):
        if d.host[p.slot[d.group[v]]] and p.waits[slots + v] == 0:
            p.queue[size] = slots + v
            size += 1
    return size
