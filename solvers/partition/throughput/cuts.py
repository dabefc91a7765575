"""The best pipeline along some linear extensions at once: the recurrence of PipeDream on all of their prefixes.

f[c, J] = min over t and I before J on one of the orders of max(f[c - e(t), I], load(t, J minus I)),

c counting the devices used of each type. A stage runs along one order; where two orders have a prefix in common, as a
set, a plan may change from one to the other: it takes the best parts of both. The prefixes are gone through by size, so
that every load is computed once, and in pieces: a group that joins a stage pays for the outputs that it opens there,
and takes back those that it closes. A pair (c, J) is dropped that the devices left cannot finish below the cap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gangplan.instances.verify import TOLERANCE

from .orders import Ints, ragged
from .quotient import Quotient

STRICT = 1e-9
"""A plan must be below the cap by this much, relatively, to count."""
CELLS = 6_000_000
"""Numbers of f that one call may hold."""
Stages = list[tuple[int, Ints]]
"""In order: device type, groups."""


class Cuts:
    """Cuts linear extensions of one quotient.

    Args:
        q: the quotient; types of devices that are not to be used have count 0.
    """

    def __init__(self, q: Quotient) -> None:
        self.q = q
        self.types = np.flatnonzero(q.counts)
        touching: list[list[int]] = [[] for _ in range(q.n_groups)]
        for e, (pins, _) in enumerate(q.nets):
            for g in pins:
                touching[g].append(e)
        self._nets = ragged(touching)
        self._size = np.array([len(pins) for pins, _ in q.nets], dtype=np.int64)
        self._cost = np.array([cost for _, cost in q.nets], dtype=np.float64)
        self._counts = q.counts[self.types].astype(np.int64)
        self._stride = np.concatenate([[1], np.cumprod(self._counts + 1)])
        room = q.capacity[self.types] * (1 + TOLERANCE / 2)
        self._static = (
            q.time[self.types], q.memory, q.work, room if q.memory_binds else np.full(len(room), np.inf),
            q.host[self.types], q.speed[self.types], self._counts, self._stride,
        )  # fmt: skip
        self._name = np.random.default_rng(0).integers(1, 2**63 - 1, q.n_groups)
        self.most = max(1, int(CELLS / (self._stride[-1] * (q.n_groups + 1))))

    def best(self, orders: Ints, cap: float) -> tuple[float, Stages] | None:
        """Return the least maximum load below `cap` seconds along the orders and its stages, None if there is none.

        Args:
            orders: linear extensions, int64 (K, G); those beyond `most` are left out.
            cap: seconds.
        """
        orders = orders[: self.most]
        ideal, count = _ideals(orders, self._name)
        nets = _positions(orders, *self._nets, self._size)
        recurrence: Any = _recurrence  # of more arguments than numba's types allow for
        value, trace = recurrence(
            orders, ideal, count, *nets, *self._nets, self._cost, *self._static, cap * (1 - STRICT)
        )
        if not np.isfinite(value):
            return None
        return float(value), [(int(self.types[t]), orders[k, i:j]) for k, i, j, t in trace[::-1]]


def _ideals(orders: Ints, name: NDArray[np.int64]) -> tuple[Ints, int]:
    """Number the prefixes of the orders, int64 (K, G + 1); equal sets have one number, that of none is 0."""
    sums = np.zeros((len(orders), orders.shape[1] + 1), dtype=np.int64)
    # sums wrap around; two sets of one size with one sum would need a coincidence of one in 2^63
    np.cumsum(name[orders], axis=1, out=sums[:, 1:])
    if len(orders) == 1:
        return np.arange(orders.shape[1] + 1)[None, :], orders.shape[1] + 1
    number = np.zeros_like(sums)
    same = _numbered(sums, number)
    return number, int(same)


@njit(cache=True)
def _numbered(sums: Any, number: Any) -> Any:
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


@njit(cache=True)
def _positions(orders: Any, net: Any, first: Any, size: Any) -> Any:
    """Return for each pin, as an order comes to it, the place of the net's pin before, of its first, and if it is last.

    The arrays are (K, pins), pins in the order of the groups they belong to; without a pin before it is -1.
    """
    count, n = orders.shape
    before = np.full((count, len(net)), -1, dtype=np.int32)
    start = np.empty((count, len(net)), dtype=np.int32)
    last = np.zeros((count, len(net)), dtype=np.bool_)
    for k in range(count):
        seen = np.zeros(len(size), dtype=np.int64)
        latest = np.full(len(size), -1, dtype=np.int64)
        began = np.zeros(len(size), dtype=np.int64)
        for p in range(n):
            g = orders[k, p]
            for x in range(first[g], first[g + 1]):
                e = net[x]
                if seen[e] == 0:
                    began[e] = p
                before[k, x], start[k, x] = latest[e], began[e]
                latest[e] = p
                seen[e] += 1
                last[k, x] = seen[e] == size[e]
    return before, start, last


@njit(cache=True)
def _recurrence(  # noqa: PLR0912, PLR0915
    orders: Any, ideal: Any, count: Any, before: Any, start: Any, last: Any, net: Any, first: Any, cost: Any,
    time: Any, memory: Any, work: Any, room: Any, host: Any, speed: Any, counts: Any, stride: Any, cap: Any,
) -> Any:  # fmt: skip
    several, n = orders.shape
    types, states = len(counts), stride[-1]
    value = np.full((states, count), np.inf)
    source = np.full((states, count), -1, dtype=np.int64)
    value[0, 0] = 0.0
    total = work.sum()
    # how much work the devices that a state has left can do below the cap
    left = np.zeros(states)
    for c in range(states):
        for t in range(types):
            used = (c // stride[t]) % (counts[t] + 1)
            left[c] += (counts[t] - used) * speed[t] * cap
    left += 1e-9 * total
    done = np.zeros((several, n + 1))
    for k in range(several):
        for i in range(n):
            done[k, i + 1] = done[k, i] + work[orders[k, i]]
    live = np.empty(states, dtype=np.int64)
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
                    held += memory[g]
                    if not compute < cap or held > room[t]:
                        break
                    if not host[t]:
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
                        d = c + stride[t]
                        worst = max(value[c, here], load)
                        if worst < value[d, there] and rest <= left[d]:
                            value[d, there] = worst
                            source[d, there] = ((k * (n + 1) + i) * (n + 1) + j + 1) * types + t
    at, best = -1, np.inf
    full = ideal[0, n]
    for c in range(states):
        if value[c, full] < best:
            best, at = value[c, full], c
    trace = [(0, 0, 0, 0)]
    trace.pop()
    if at < 0:
        return best, trace
    where = full
    while where != 0:
        code = source[at, where]
        t = code % types
        code //= types
        j = code % (n + 1)
        code //= n + 1
        i, k = code % (n + 1), code // (n + 1)
        trace.append((k, i, j, t))
        at -= stride[t]
        where = ideal[k, i]
    return best, trace
