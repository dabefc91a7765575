"""From keys and penalties to a schedule: jobs by their keys, each at the option that costs least, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.decode import data_of, rows_of
from gangplan.solvers.schedule.prepare import Prepared
from gangplan.solvers.schedule.profile import clear, find, new, occupy

Busy = tuple[Any, Any, Any]
"""What runs already: node, GPUs and until when, see `place`."""


@njit(cache=True)
def place(
    order: Any, penalty: Any, out: Any, data: Any, room: Any, busy: Any, start: Any, option: Any, finish: Any, rows: Any
) -> Any:
    """Place the jobs in `order`; return (cost without constant, rows used).

    An option costs slope times its completion, or what it adds to the makespan, and its penalty; leaving a job out
    costs its price and `out`. Each job takes what costs least of all that is in time. One that must run and cannot
    makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        penalty: float64 (o,), in the unit of the goal.
        out: the same of leaving out a job, float64 (n,).
        data, room: see `gangplan.solvers.schedule.decode`.
        busy: what runs already: (node, GPUs, until), int64 (r,) twice and float64 (r,).
        start, option, finish, rows: written: float64 (n,), int64 (n,) with -1 for a job left out, float64 (o,) when
            each option would have ended, int64 (3, r).
    """
    first, gpus, seconds, release, deadline, slope, price, makespan, kind, per, size, block_first, server = data
    times, free, count, chosen, spot = room
    clear(free, count, per)
    for i in range(len(busy[0])):
        occupy(times, free, count, busy[0][i], 0.0, busy[2][i], busy[1][i])
    cost, last, used = 0.0, 0.0, 0
    for j in order:
        best, at, nodes, least = -1, 0.0, 0, price[j] + out[j]
        for o in range(first[j], first[j + 1]):
            t, k = find(kind, per, times, free, count, size, block_first, server, release[j], gpus[o], seconds[o], spot)
            end = t + seconds[o]
            finish[o] = end
            if not end <= deadline[j]:
                continue
            value = slope[j] * end + penalty[o]
            if makespan:
                value += max(0.0, end - last)
            if value < least or (best < 0 and price[j] == np.inf):
                best, at, nodes, least = o, t, k, value
                chosen[:k] = spot[:k]
        option[j] = best
        if best < 0:
            start[j] = 0.0
            cost += price[j]
            if cost == np.inf:
                return cost, used
            continue
        start[j] = at
        end = at + seconds[best]
        cost += slope[j] * end
        last = max(last, end)
        left = gpus[best]
        for k in range(nodes):
            taken = min(left, per)
            occupy(times, free, count, chosen[k], at, end, taken)
            if kind:
                rows[0, used], rows[1, used], rows[2, used] = j, chosen[k], taken
                used += 1
            left -= taken
    return (cost + last if makespan else cost), used


def room_for(p: Prepared, busy: Busy) -> Any:
    """Return what schedules are built in beside what runs already."""
    c = p.cluster
    spots = np.empty(c.total + 1, dtype=np.int64), np.empty(c.total + 1, dtype=np.int64)
    return (*new(c.nodes, c.gpus, p.n + len(busy[0])), *spots)


def idle() -> Busy:
    """Return that nothing runs."""
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


class Decoder:
    """Decodes again and again for one problem, in the same room.

    Attributes:
        busy: what runs already.
        start, option, finish: of the schedule that was decoded last, see `place`; they are overwritten by the next.
    """

    def __init__(self, p: Prepared, busy: Busy | None = None) -> None:
        self.busy = idle() if busy is None else busy
        self.p, self._data, self._room, self._rows = p, data_of(p), room_for(p, self.busy), rows_of(p)
        self.start, self.option = np.zeros(p.n), np.zeros(p.n, dtype=np.int64)
        self.finish = np.zeros(len(p.gpus))
        self._used = 0

    def decode(self, keys: FloatArray, penalty: FloatArray, out: FloatArray) -> float:
        """Return the goal of one schedule; inf if a job that must run has no time."""
        order = np.argsort(keys, kind="stable")
        cost, self._used = place(
            order, penalty, out, self._data, self._room, self.busy, self.start, self.option, self.finish, self._rows
        )
        return self.p.constant + float(cost)

    def plan(self) -> Any:
        """Return the plan of the schedule decoded last."""
        return self.p.plan(self.option, self.start, self._rows[:, : self._used])
