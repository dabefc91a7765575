"""The best pipeline along some linear extensions at once: the recurrence of PipeDream on all of their prefixes.

f[c, J] = min over t and I before J on one of the orders of max(f[c - e(t), I], load(t, J minus I)),

c counting the devices used of each type. A stage runs along one order; where two orders have a prefix in common, as a
set, a plan may change from one to the other: it takes the best parts of both. The prefixes are gone through by size, so
that every load is computed once, and in pieces: a group that joins a stage pays for the outputs that it opens there,
and takes back those that it closes. A pair (c, J) is dropped that the devices left cannot finish below the cap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ...compiled.kernel import Bools2, Floats, Floats2, Halves2, Ints, Ints2, by_reference, lean, lean_kernel
from ...compiled.routines import pop, push
from .arrays import PipelineArrays, Stages

Index = NDArray[np.int64]


def forward(d: PipelineArrays, scores: FloatArray) -> Index:
    """Return the linear extension in which the ready group of least score comes first, int64 (G,)."""
    return _extended(-scores, d.after, d.first_after, np.diff(d.first_before))


def backward(d: PipelineArrays, scores: FloatArray) -> Index:
    """Return the linear extension made from its end, where of groups without successors the largest score goes last.

    Another than `forward`'s, unless the scores are those of a linear extension themselves.
    """
    return _extended(np.array(scores), d.before, d.first_before, np.diff(d.first_after))[::-1].copy()


def _extended(value: FloatArray, after: Index, first: Index, needs: Index) -> Index:
    """Return the order in which the ready group of the highest value, of equals the first, comes next."""
    place = np.arange(len(value))
    order: Index = np.empty_like(place)
    extend(value, place, after, first, needs.copy(), np.empty_like(place), order)
    return order


@lean_kernel
def extend(
    value: Floats, place: Ints, after: Ints, first: Ints, missing: Ints, heap: Ints,
    order: Ints,
) -> None:  # fmt: skip
    """Write the groups in order, see `_extended`.

    Args:
        value: of each group, float64 (G,).
        place: of each group, by which equals come, int64 (G,).
        after, first: its successors are `after[first[g]:first[g + 1]]`.
        missing: how many predecessors it has, overwritten, int64 (G,).
    """
    size = 0
    for g in range(len(value)):
        if missing[g] == 0:
            size = push(heap, size, g, value, place)
    for i in range(len(value)):
        g = heap[0]
        size = pop(heap, size, value, place)
        order[i] = g
        for j in range(first[g], first[g + 1]):
            x = after[j]
            missing[x] -= 1
            if missing[x] == 0:
                size = push(heap, size, x, value, place)


STRICT = 1e-9
"""A plan must be below the cap by this much, relatively, to count."""
CELLS = 6_000_000
"""Numbers of f that one call may hold."""


class Table(NamedTuple):
    """What is worked out for K orders; C states, J prefixes.

    Attributes:
        orders: int64 (K, G); ideal: number of each prefix, int64 (K, G + 1).
        before, start, last: for each pin, as an order comes to it, the place of the net's pin before, -1 without one,
            of its first, int32 (K, pins), and if it is the last, bool (K, pins), in the order of their groups.
        seen, latest, began: pins of each net so far, the place of the last one and of the first, int64 (E,).
        value, source: f, and how it came about, float64 and int64 (C, J).
        left: how much work the devices that a state has left can do below the cap, float64 (C,).
        done: work of each prefix, float64 (K, G + 1).
        live: states that a stage can begin in, int64 (C,).
        trace: order, first and last group and type of each stage, from the last on, int64 (G, 4).
    """

    orders: Ints2
    ideal: Ints2
    before: Halves2
    start: Halves2
    last: Bools2
    seen: Ints
    latest: Ints
    began: Ints
    value: Floats2
    source: Ints2
    left: Floats
    done: Floats2
    live: Ints
    trace: Ints2


def most_orders(d: PipelineArrays) -> int:
    """Return how many orders one call may cut."""
    return max(1, int(CELLS / (d.stride[-1] * (len(d.work) + 1))))


def best_cut(d: PipelineArrays, orders: Index, cap: float) -> tuple[float, Stages] | None:
    """Return the least maximum load below `cap` seconds along the orders and its stages, `None` if there is none.

    Args:
        d: a contiguous quotient; types of devices that are not to be used have count 0.
        orders: linear extensions, int64 (K, G); those beyond `most_orders` are left out.
    """
    orders = np.ascontiguousarray(orders[: most_orders(d)])
    table = _table(d, orders, *_ideals(orders))
    value, stages = cut(d, table, cap * (1 - STRICT))
    if not np.isfinite(value):
        return None
    return value, [(t, orders[k, i:j]) for k, i, j, t in table.trace[:stages][::-1].tolist()]


def _table(arrays: PipelineArrays, orders: Index, ideal: Index, count: int) -> Table:
    several, n = orders.shape
    pins, nets, states = (several, len(arrays.net)), len(arrays.size), int(arrays.stride[-1])
    return Table(
        orders, ideal, np.empty(pins, np.int32), np.empty(pins, np.int32), np.empty(pins, np.bool_),
        np.empty(nets, np.int64), np.empty(nets, np.int64), np.empty(nets, np.int64),
        np.full((states, count), np.inf), np.full((states, count), -1), np.zeros(states), np.zeros((several, n + 1)),
        np.empty(states, np.int64), np.empty((n, 4), np.int64),
    )  # fmt: skip


def _ideals(orders: Index) -> tuple[Index, int]:
    """Give numbers to the prefixes of the orders, int64 (K, G + 1); equal sets have one number, that of none is 0."""
    n = orders.shape[1]
    if len(orders) == 1:
        return np.arange(n + 1)[None, :], n + 1
    name: Index = np.random.default_rng(0).integers(1, 2**63 - 1, size=(n,))
    sums = np.zeros((len(orders), n + 1), dtype=np.int64)
    # sums wrap around; two sets of one size with one sum would need a coincidence of one in 2^63
    np.cumsum(name[orders], axis=1, out=sums[:, 1:])
    number = np.zeros_like(sums)
    same = numbered(sums, number)
    return number, int(same)


@lean_kernel
def numbered(sums: Ints2, number: Ints2) -> int:
    """Write a number for each prefix, (K, G + 1), given sums that tell them apart, and return how many there are."""
    orders, width = sums.shape
    count = 0
    for i in range(width):
        for k in range(orders):
            found = -1
            for other in range(k):
                if sums[other, i] == sums[k, i]:
                    found = number[other, i]
                    break
            if found < 0:
                found = count
                count += 1
            number[k, i] = found
    return count


@lean_kernel
def cut(arrays: PipelineArrays, table: Table, cap: float) -> tuple[float, int]:
    """Return the least maximum load below `cap` seconds, infinite if there is none, and how many stages it takes."""
    d, s = by_reference(arrays), by_reference(table)
    _positions(d, s)
    _recurrence(d, s, cap)
    return _traced(d, s)


@lean
def _positions(d: PipelineArrays, s: Table) -> None:
    several, n = s.orders.shape
    seen, latest, began = s.seen, s.latest, s.began
    for k in range(several):
        for e in range(len(seen)):
            seen[e], latest[e], began[e] = 0, -1, 0
        for p in range(n):
            g = s.orders[k, p]
            for x in range(d.first[g], d.first[g + 1]):
                e = d.net[x]
                if seen[e] == 0:
                    began[e] = p
                s.before[k, x], s.start[k, x] = latest[e], began[e]
                latest[e] = p
                seen[e] += 1
                s.last[k, x] = seen[e] == d.size[e]


@lean
def _recurrence(d: PipelineArrays, s: Table, cap: float) -> None:  # noqa: PLR0912
    orders, ideal, value, source, left, done, live = s.orders, s.ideal, s.value, s.source, s.left, s.done, s.live
    before, start, last = s.before, s.start, s.last
    time, net, first, cost, stride, counts = d.time, d.net, d.first, d.cost, d.stride, d.counts
    several, n = orders.shape
    types, states = len(counts), len(left)
    value[0, 0] = 0.0
    total = 0.0
    for g in range(n):
        total += d.work[g]
    for c in range(states):
        for t in range(types):
            used = (c // stride[t]) % (counts[t] + 1)
            left[c] += (counts[t] - used) * d.speed[t] * cap
        left[c] += 1e-9 * total
    for k in range(several):
        for i in range(n):
            done[k, i + 1] = done[k, i] + d.work[orders[k, i]]
    for i in range(n):
        for k in range(several):
            here = ideal[k, i]
            for t in range(types):
                some = 0
                for c in range(states):
                    if value[c, here] < cap and (c // stride[t]) % (counts[t] + 1) < counts[t]:
                        live[some] = c
                        some += 1
                if some == 0:
                    continue
                compute, moved, held = 0.0, 0.0, 0.0
                for j in range(i, n):
                    g = orders[k, j]
                    compute += time[t, g]
                    held += d.memory[g]
                    if not compute < cap or held > d.room[t]:
                        break
                    if not d.host[t]:
                        for x in range(first[g], first[g + 1]):
                            if before[k, x] < i:
                                moved += cost[net[x]]
                            if last[k, x] and start[k, x] >= i:
                                moved -= cost[net[x]]
                    load = compute + moved
                    if not load < cap:
                        continue
                    there, rest = ideal[k, j + 1], total - done[k, j + 1]
                    for y in range(some):
                        c = live[y]
                        more = c + stride[t]
                        worst = max(value[c, here], load)
                        if worst < value[more, there] and rest <= left[more]:
                            value[more, there] = worst
                            source[more, there] = ((k * (n + 1) + i) * (n + 1) + j + 1) * types + t


@lean
def _traced(d: PipelineArrays, s: Table) -> tuple[float, int]:
    """Write the trace of the best plan; return its load, infinite if there is none, and the length of the trace."""
    n, types = s.orders.shape[1], len(d.counts)
    at, best, where, stages = -1, np.inf, s.ideal[0, n], 0
    for c in range(len(s.left)):
        if s.value[c, where] < best:
            best, at = s.value[c, where], c
    while at >= 0 and where != 0:
        code = s.source[at, where]
        t = code % types
        code //= types
        j = code % (n + 1)
        code //= n + 1
        i, k = code % (n + 1), code // (n + 1)
        s.trace[stages, 0], s.trace[stages, 1], s.trace[stages, 2], s.trace[stages, 3] = k, i, j, t
        stages += 1
        at -= d.stride[t]
        where = s.ideal[k, i]
    return best, stages
