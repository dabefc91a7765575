"""Compiled: linear extensions of a quotient, and the cuts of several of them into stages."""

from __future__ import annotations

import cython
import numpy as np
from cython import cclass, cfunc, declare, final, nogil, void
from numpy.typing import NDArray

from ...native import Heap
from .kernels import PipelineArrays

if not cython.compiled:
    from ...native import Float, Floats, Int, Ints, Ints2, within

NEVER = declare(Float, float("inf"))


def extend(d: PipelineArrays, value: Floats) -> NDArray[np.int64]:
    """Return the order in which the ready group of the highest value, of equals the first, comes next, int64 (G,).

    Args:
        value: of each group, float64 (G,).
    """
    if len(value) != d.groups:
        raise ValueError(f"{len(value)} values are not those of {d.groups} groups")
    order, missing = np.empty((2, d.groups), np.int64)
    heap = Heap(value)
    _extend(d, heap, order, missing)
    return order


@cfunc
def _extend(d: PipelineArrays, heap: Heap, order: Ints, missing: Ints) -> void:
    after, first, before = d.after, d.first_after, d.first_before
    with nogil:
        for g in range(d.groups):
            missing[g] = before[g + 1] - before[g]
            if missing[g] == 0:
                heap.push(g)
        for i in range(d.groups):
            v = heap.pop()
            order[i] = v
            for j in range(first[v], first[v + 1]):
                x = after[j]
                missing[x] -= 1
                if missing[x] == 0:
                    heap.push(x)


def numbered(sums: Ints2, number: Ints2) -> int:
    """Write a number for each prefix, (K, G + 1), given sums that tell them apart, and return how many there are."""
    orders, width = sums.shape[0], sums.shape[1]
    if (number.shape[0], number.shape[1]) != (orders, width):
        raise ValueError(f"numbers of {len(number)} orders are not those of {orders}, or of other groups")
    count: Int = 0
    with nogil:
        for i in range(width):
            for k in range(orders):
                found: Int = -1
                for other in range(k):
                    if sums[other, i] == sums[k, i]:
                        found = number[other, i]
                        break
                if found < 0:
                    found = count
                    count += 1
                number[k, i] = found
    return count


@final
@cclass
class Table:
    """What is worked out for K orders; C states, J prefixes.

    Attributes:
        several: K.
        orders: int64 (K, G); ideal: number of each prefix, int64 (K, G + 1).
        before, start, last: for each pin, as an order comes to it, the place of the net's pin before, -1 without one,
            of its first, int32 (K, pins), and if it is the last, (K, pins), in the order of their groups.
        seen, latest, began: pins of each net so far, the place of the last one and of the first, int64 (E,).
        value, source: f, and how it came about, float64 and int64 (C, J).
        left: how much work the devices that a state has left can do below the cap, float64 (C,).
        done: work of each prefix, float64 (K, G + 1).
        live: states that a stage can begin in, int64 (C,).
        trace: order, first and last group and type of each stage, from the last on, int64 (G, 4).
    """

    def __init__(self, d: PipelineArrays, orders: NDArray[np.int64], ideal: NDArray[np.int64], prefixes: Int) -> None:
        self.several, self.orders, self.ideal = len(orders), orders, ideal
        width = d.groups + 1
        if self.orders.shape[1] != d.groups or self.ideal.shape[0] != self.several or self.ideal.shape[1] != width:
            raise ValueError(f"orders {orders.shape} and prefixes {ideal.shape} are not those of {d.groups} groups")
        if not within(orders.ravel(), d.groups, False) or not within(ideal.ravel(), prefixes, False):
            raise ValueError(f"orders {orders} are not of {d.groups} groups, or {ideal} not of {prefixes} prefixes")
        self.before, self.start = np.empty((2, self.several, len(d.net)), np.int32)
        self.last = np.empty((self.several, len(d.net)), np.uint8)
        self.seen, self.latest, self.began = np.empty((3, len(d.size)), np.int64)
        self.value, self.source = np.empty((d.states, prefixes)), np.empty((d.states, prefixes), np.int64)
        self.left, self.live = np.empty(d.states), np.empty(d.states, np.int64)
        self.done, self.trace = np.empty((self.several, width)), np.empty((d.groups, 4), np.int64)


def cut(
    d: PipelineArrays, orders: NDArray[np.int64], ideal: NDArray[np.int64], prefixes: Int, cap: Float
) -> tuple[float, NDArray[np.int64]]:
    """Return the least maximum load below `cap` seconds, infinite if there is none, and the trace of its stages.

    See `Table` for the arguments; `prefixes` is J.
    """
    s = Table(d, orders, ideal, prefixes)
    with nogil:
        _positions(d, s)
        _recurrence(d, s, cap)
        load, stages = _traced(d, s)
    return load, np.asarray(s.trace)[:stages]


@cfunc
@nogil
def _positions(d: PipelineArrays, s: Table) -> void:
    for k in range(s.several):
        for e in range(len(d.size)):
            s.seen[e], s.latest[e], s.began[e] = 0, -1, 0
        for p in range(d.groups):
            g = s.orders[k, p]
            for x in range(d.first[g], d.first[g + 1]):
                net = d.net[x]
                if s.seen[net] == 0:
                    s.began[net] = p
                s.before[k, x], s.start[k, x] = s.latest[net], s.began[net]
                s.latest[net] = p
                s.seen[net] += 1
                s.last[k, x] = s.seen[net] == d.size[net]


@cfunc
@nogil
def _recurrence(d: PipelineArrays, s: Table, cap: Float) -> void:
    types, n, total = len(d.counts), d.groups, 0.0
    for g in range(n):
        total += d.work[g]
    for c in range(d.states):
        for j in range(s.value.shape[1]):
            s.value[c, j], s.source[c, j] = NEVER, -1
        s.left[c] = 0.0
        for t in range(types):
            used = (c // d.stride[t]) % (d.counts[t] + 1)
            s.left[c] += (d.counts[t] - used) * d.speed[t] * cap
        s.left[c] += 1e-9 * total
    s.value[0, 0] = 0.0
    for k in range(s.several):
        s.done[k, 0] = 0.0
        for i in range(n):
            s.done[k, i + 1] = s.done[k, i] + d.work[s.orders[k, i]]
    for i in range(n):
        for k in range(s.several):
            here = s.ideal[k, i]
            for t in range(types):
                some: Int = 0
                for c in range(d.states):
                    if s.value[c, here] < cap and (c // d.stride[t]) % (d.counts[t] + 1) < d.counts[t]:
                        s.live[some] = c
                        some += 1
                if some > 0:
                    _stages(d, s, cap, total, i, k, t, some)


@cfunc
@nogil
def _stages(d: PipelineArrays, s: Table, cap: Float, total: Float, i: Int, k: Int, t: Int, some: Int) -> void:
    """Try stages of type t along order k from its place i on, from each of `some` live states."""
    n, types, here = d.groups, len(d.counts), s.ideal[k, i]
    compute: Float = 0.0
    moved: Float = 0.0
    held: Float = 0.0
    for j in range(i, n):
        g = s.orders[k, j]
        compute += d.time[t, g]
        held += d.memory[g]
        if not compute < cap or held > d.room[t]:
            break
        if not d.host[t]:
            for x in range(d.first[g], d.first[g + 1]):
                if s.before[k, x] < i:
                    moved += d.cost[d.net[x]]
                if s.last[k, x] and s.start[k, x] >= i:
                    moved -= d.cost[d.net[x]]
        load = compute + moved
        if not load < cap:
            continue
        there, rest = s.ideal[k, j + 1], total - s.done[k, j + 1]
        for y in range(some):
            c = s.live[y]
            more = c + d.stride[t]
            worst = max(s.value[c, here], load)
            if worst < s.value[more, there] and rest <= s.left[more]:
                s.value[more, there] = worst
                s.source[more, there] = ((k * (n + 1) + i) * (n + 1) + j + 1) * types + t


@cfunc
@nogil
def _traced(d: PipelineArrays, s: Table) -> tuple[Float, Int]:
    """Write the trace of the best plan; return its load, infinite if there is none, and the length of the trace."""
    width, types = d.groups + 1, len(d.counts)
    best: Float = NEVER
    where: Int = s.ideal[0, d.groups]
    at: Int = -1
    stages: Int = 0
    for c in range(d.states):
        if s.value[c, where] < best:
            best = s.value[c, where]
            at = c
    while at >= 0 and where != 0:
        code: Int = s.source[at, where]
        t: Int = code % types
        j: Int = code // types % width
        i: Int = code // (types * width) % width
        k: Int = code // (types * width * width)
        s.trace[stages, 0], s.trace[stages, 1], s.trace[stages, 2], s.trace[stages, 3] = k, i, j, t
        stages += 1
        at -= d.stride[t]
        where = s.ideal[k, i]
    return best, stages
