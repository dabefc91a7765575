"""From a list of jobs and their options to a schedule: each as early as it fits, in the order of the list, compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray

from .prepare import Ints, Prepared
from .profile import clear, find, new, occupy

_STEPS = 5_000_000
"""Jobs times jobs times nodes between two looks at the clock."""


@njit(cache=True)
def serial(
    order: Any, wish: Any, data: Any, room: Any, start: Any, option: Any, rows: Any, begin: int, end: int, so_far: Any
) -> Any:
    """Place the jobs of `order` from `begin` up to `end`; return (cost without constant, last completion, rows used).

    A job whose wish is late takes the option that ends first; if that is late too, or costs more than leaving it out,
    it is left out. One that must run and cannot makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        wish: int64 (n,), an option, -1 (leave it out) or -2 (whichever ends first).
        data: see `data_of`.
        room: see `room_of`; cleared before the first of them.
        start, option, rows: written: float64 (n,), int64 (n,) with -1 for a job left out, int64 (3, r).
        begin, end: places in `order`.
        so_far: what it returned of those before `begin`, (0.0, 0.0, 0) at the beginning.
    """
    first, gpus, seconds, release, deadline, slope, price, makespan, kind, per, size, block_first, server = data
    times, free, count, chosen, spot = room
    cost, last, used = so_far
    for place in range(begin, end):
        j = order[place]
        best, at, nodes = -1, np.inf, 0
        if wish[j] >= 0:
            at, nodes = find(
                kind,
                per,
                times,
                free,
                count,
                size,
                block_first,
                server,
                release[j],
                gpus[wish[j]],
                seconds[wish[j]],
                spot,
            )
            if at + seconds[wish[j]] <= deadline[j]:
                best = wish[j]
                chosen[:nodes] = spot[:nodes]
        if best < 0 and wish[j] != -1:
            finish = np.inf
            for o in range(first[j], first[j + 1]):
                t, k = find(
                    kind, per, times, free, count, size, block_first, server, release[j], gpus[o], seconds[o], spot
                )
                if t + seconds[o] < finish:
                    finish, best, at, nodes = t + seconds[o], o, t, k
                    chosen[:k] = spot[:k]
            if finish > deadline[j]:
                best = -1
        finish = at + seconds[best] if best >= 0 else np.inf
        if best >= 0 and price[j] < slope[j] * finish + (max(0.0, finish - last) if makespan else 0.0):
            best = -1
        option[j] = best
        if best < 0:
            start[j] = 0.0
            cost += price[j]
            if cost == np.inf:
                return cost, last, used
            continue
        start[j] = at
        cost += slope[j] * finish
        last = max(last, finish)
        left = gpus[best]
        for k in range(nodes):
            taken = min(left, per)
            occupy(times, free, count, chosen[k], at, finish, taken)
            if kind:
                rows[0, used], rows[1, used], rows[2, used] = j, chosen[k], taken
                used += 1
            left -= taken
    return cost, last, used


@njit(cache=True)
def whole(order: Any, wish: Any, data: Any, room: Any, start: Any, option: Any, rows: Any) -> Any:
    """Place all jobs in `order`; return (cost without constant, rows used)."""
    clear(room[1], room[2], data[9])
    cost, last, used = serial(order, wish, data, room, start, option, rows, 0, len(order), (0.0, 0.0, 0))
    return (cost + last if data[7] else cost), used


def data_of(p: Prepared) -> Any:
    """Return what `serial` reads."""
    c = p.cluster
    return (
        *(p.first, p.gpus, p.seconds, p.release, p.deadline, p.slope, p.price, p.makespan),
        *(c.kind, c.gpus, c.size, c.first, c.server),
    )


def room_of(p: Prepared) -> Any:
    """Return what `serial` works in."""
    c = p.cluster
    return (*new(c.nodes, c.gpus, p.n), np.empty(c.total + 1, dtype=np.int64), np.empty(c.total + 1, dtype=np.int64))


def decode(p: Prepared, order: Ints, wish: Ints) -> tuple[float, Ints, FloatArray, Ints]:
    """Return (goal, option, start, rows) of a list of jobs; see `serial`."""
    start, option, rows = np.zeros(p.n), np.zeros(p.n, dtype=np.int64), rows_of(p)
    cost, used = whole(
        np.asarray(order, np.int64), np.asarray(wish, np.int64), data_of(p), room_of(p), start, option, rows
    )
    return p.constant + float(cost), option, start, rows[:, :used]


def decoding(p: Prepared, order: Ints, wish: Ints) -> Iterator[float]:
    """Decode a list some jobs at a time; yield inf after each but the last, and the goal at the end."""
    start, option, rows = np.zeros(p.n), np.zeros(p.n, dtype=np.int64), rows_of(p)
    # the room is new, so it is clear
    given = np.asarray(order, np.int64), np.asarray(wish, np.int64), data_of(p), room_of(p), start, option, rows
    so_far: Any = (0.0, 0.0, 0)
    few = max(1, _STEPS // (p.n * p.cluster.nodes))
    for begin in range(0, p.n, few):
        so_far = serial(*given, begin, min(begin + few, p.n), so_far)
        if so_far[0] == np.inf:
            break
        if begin + few < p.n:
            yield np.inf
    yield p.constant + float(so_far[0] + (so_far[1] if p.makespan else 0.0))


def rows_of(p: Prepared) -> Ints:
    """Return room for the rows of any schedule, int64 (3, r)."""
    if not p.cluster.kind or not len(p.gpus):
        return np.zeros((3, 0), dtype=np.int64)
    most = np.maximum.reduceat(-(-p.gpus // p.cluster.gpus), p.first[:-1][np.diff(p.first) > 0])
    return np.zeros((3, int(most.sum())), dtype=np.int64)
