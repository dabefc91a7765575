"""The best sequence of calls and host segments along a line of items, by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...run import Run
from .line import Line, Orders
from .reduced import Reduced, host_slots, offer

_STATES = 128
"""Mixes of devices in use that the recurrence tells apart."""


def sequence(line: Line, stopped: Callable[[], bool]) -> list[int] | None:
    """Return the slot of each group in the best sequence along `line`, `None` if there is none or no time.

    With f(c, j) the least time in which calls on c[t] accelerators of each type, one after the other, and host
    segments between them do positions 0 to j - 1:

        f(c, j) = min(min over i < j of f(c, i) + hosts(i, j), min over i < j and t of f(c - 1[t], i) + calls(t, i, j))

    Calls of the plan may overlap in time where the graph allows, so it is no worse than that.
    """
    r = line.r
    types = sorted(line.calls)
    counts = _counts(r, types, line.length)
    size = line.length + 1
    best: dict[tuple[int, ...], FloatArray] = {}
    steps: dict[tuple[int, ...], tuple[IntArray, IntArray]] = {}
    hosts, calls = line.hosts, line.calls
    for c in product(*(range(n + 1) for n in counts)):
        if stopped():
            return None
        f = np.full(size, np.inf)
        chosen, start = np.full(size, -2, dtype=np.int32), np.zeros(size, dtype=np.int32)
        f[0] = 0.0
        for k, t in enumerate(types):
            if c[k] == 0:
                continue
            fewer = best[(*c[:k], c[k] - 1, *c[k + 1 :])]
            through = fewer[:, None] + calls[t]
            i = through.argmin(axis=0)
            value = through[i, np.arange(size)]
            better = value < f
            f[better], chosen[better], start[better] = value[better], k, i[better]
        if r.pools:
            for j in range(1, size):
                onto = f[:j] + hosts[:j, j]
                i_host = int(onto.argmin())
                if onto[i_host] < f[j]:
                    f[j], chosen[j], start[j] = onto[i_host], -1, i_host
        best[c], steps[c] = f, (chosen, start)
    last = min(best, key=lambda c: (float(best[c][-1]), c))
    if not np.isfinite(best[last][-1]):
        return None
    return _traced(line, types, steps, last)


def _counts(r: Reduced, types: list[int], length: int) -> list[int]:
    counts = [min(length, sum(r.slots[s].kind == t for s in r.callers)) for t in types]
    while np.prod([n + 1 for n in counts]) > _STATES and max(counts, default=0) > 1:
        counts[int(np.argmax(counts))] -= 1
    return counts


def _traced(
    line: Line, types: list[int], steps: dict[tuple[int, ...], tuple[IntArray, IntArray]], c: tuple[int, ...]
) -> list[int]:
    r = line.r
    of_group = [int(line.place[items[0]]) for items in r.groups]
    parts: list[tuple[int, int, int]] = []
    j = line.length
    while j > 0:
        chosen, start = steps[c]
        k, i = int(chosen[j]), int(start[j])
        parts.append((k, i, j))
        if k >= 0:
            c = (*c[:k], c[k] - 1, *c[k + 1 :])
        j = i
    free = {t: [s for s in r.callers if r.slots[s].kind == t] for t in types}
    owner = np.zeros(line.length, dtype=np.int64)
    for k, i, j in reversed(parts):
        owner[i:j] = -1 if k < 0 else free[types[k]].pop(0)
    pool = host_slots(r)
    return [pool[g] if owner[p] < 0 else int(owner[p]) for g, p in enumerate(of_group)]


_COARSE = 300
"""Positions of a line that a plan is quickly found for."""


def greedy(run: Run, r: Reduced) -> None:
    """Offer everything on hosts and the best sequence of calls along nine lines; see `sequence`."""
    home = host_slots(r)
    if not run.stopped and all(s >= 0 for s in home):
        offer(run, r, home, "hosts")
    for line in _lines(Orders(r)):
        if run.stopped:
            return
        slots = sequence(line, lambda: run.stopped)
        if slots is not None and not run.stopped:
            offer(run, r, slots, "greedy")


def _lines(orders: Orders) -> Iterator[Line]:
    first = orders.depth_first()
    if first.length > _COARSE:
        yield first.coarse(_COARSE)
    yield first
    for key in orders.candidates():
        yield orders.by_key(key)
