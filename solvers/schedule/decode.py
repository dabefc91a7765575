"""Schedules of lists: each job in the order of a list as early as it fits, at the option that is wished for or best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..compiled.kernel import Floats, Ints, Ints2, by_reference, inner, kernel
from ..run import Run, never
from . import prepare
from .prepare import CHEAPEST, LEFT_OUT, Prepared
from .profile import Busy, Data, Room, clear, find, idle, new, occupy

_STEPS = 1_000_000
"""Jobs times jobs times nodes between two looks at the clock."""


class Schedule(NamedTuple):
    """What is written of a schedule of n jobs with o options.

    Attributes:
        start: of each job, 0 if it is left out, (n,).
        option: that it runs with, -1 if it is left out, (n,).
        finish: when each option that was looked at would have ended, (o,).
        rows: job, node and GPUs of each part on a node, (3, r).
    """

    start: Floats
    option: Ints
    finish: Floats
    rows: Ints2


So = tuple[float, float, int]
"""Cost without constant, last completion, rows used."""


@kernel
def serial(
    order: Ints, wish: Ints, penalty: Floats, problem: Data, profiles: Room, running: Busy, made: Schedule,
    begin: int, end: int, so_far: So,
) -> So:  # fmt: skip
    """Place the jobs of `order` from `begin` up to `end`; return (cost without constant, last completion, rows used).

    A job whose wish is late takes the option that costs least: slope times its completion, or what it adds to the
    makespan, and its penalty. If all are late, or leaving it out costs less, it is left out. One that must run and
    cannot makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        wish: int64 (n,), an option, `LEFT_OUT`, `CHEAPEST`, or `EARLIEST`: the option that ends first.
        penalty: of each option, in the unit of the goal, float64 (o,).
        problem: see `data_of`.
        profiles: see `room_of`; cleared before the first of them.
        running: what runs already.
        made: written.
        begin, end: places in `order`.
        so_far: what it returned of those before `begin`, (0.0, 0.0, 0) at the beginning.
    """
    data, room = by_reference(problem), by_reference(profiles)
    cost, last, used = so_far
    if begin == 0:
        clear(room, data.per, running)
    for place in range(begin, end):
        j = order[place]
        best, at, nodes = chosen(data, room, j, wish[j], penalty, last, made.finish)
        made.option[j] = best
        if best < 0:
            made.start[j] = 0.0
            cost += data.price[j]
            if cost == np.inf:
                break
            continue
        finish = at + data.seconds[best]
        made.start[j] = at
        cost += data.slope[j] * finish
        last = max(last, finish)
        used = seat(data, room, j, best, at, nodes, made.rows, used)
    return cost, last, used


@inner
def chosen(
    data: Data, room: Room, job: int, wish: int, penalty: Floats, last: float, finish: Floats
) -> tuple[int, float, int]:
    """Return (option or -1, start, nodes) of a job beside those placed, see `serial`; its nodes are `room.chosen`."""
    price, slope = data.price[job], data.slope[job]
    if wish >= 0:
        at, nodes = find(data, room, job, wish, room.chosen)
        end = at + data.seconds[wish]
        if end <= data.due[wish]:
            if price < slope * end + (max(0.0, end - last) if data.makespan else 0.0):
                return -1, 0.0, 0
            return wish, at, nodes
    if wish == -1:
        return -1, 0.0, 0
    best, start, used, least = -1, 0.0, 0, np.inf if wish == -2 else price
    for o in range(data.first[job], data.first[job + 1]):
        t, k = find(data, room, job, o, room.spot)
        end = t + data.seconds[o]
        finish[o] = end
        if not end <= data.due[o]:
            continue
        value = end
        if wish != -2:
            value = slope * end + penalty[o]
            if data.makespan:
                value += max(0.0, end - last)
        if value < least or (best < 0 and price == np.inf):
            best, start, used, least = o, t, k, value
            keep(room, k)
    if wish == -2 and best >= 0 and price < slope * least + (max(0.0, least - last) if data.makespan else 0.0):
        return -1, 0.0, 0
    return best, start, used


@inner
def keep(room: Room, nodes: int) -> None:
    """Take what was looked at for the best."""
    for k in range(nodes):
        room.chosen[k] = room.spot[k]


@inner
def seat(data: Data, room: Room, job: int, option: int, at: float, nodes: int, rows: Ints2, used: int) -> int:
    """Take the nodes chosen for a job by an option, and write its rows; return how many there are then."""
    left = data.gpus[option]
    for k in range(nodes):
        taken = min(left, data.per)
        occupy(room, room.chosen[k], at, at + data.seconds[option], taken)
        if data.kind:
            rows[0, used], rows[1, used], rows[2, used] = job, room.chosen[k], taken
            used += 1
        left -= taken
    return used


def data_of(p: Prepared) -> Data:
    """Return what compiled code reads: the fields of the same names."""
    return Data(*(getattr(p, name) for name in Data._fields))


def room_of(p: Prepared, running: int = 0) -> Room:
    """Return what schedules are built in, beside so many rows that run already."""
    return new(p.nodes, p.per, p.n + running, p.total + 1)


def rows_of(p: Prepared) -> prepare.Ints:
    """Return room for the rows of any schedule, int64 (3, r)."""
    return np.zeros((3, int(-p.least(-p.gpus // p.per).sum()) if p.kind else 0), dtype=np.int64)


class Decoder:
    """Builds schedules of lists of one problem, one after the other in the same arrays.

    Attributes:
        p: the problem.
        busy: what runs already.
        made: the schedule built last; the next one overwrites it.
    """

    def __init__(self, p: Prepared, busy: Busy | None = None) -> None:
        self.p, self.busy = p, idle() if busy is None else busy
        self._data, self._room = data_of(p), room_of(p, len(self.busy.node))
        self.made = Schedule(np.zeros(p.n), np.zeros(p.n, dtype=np.int64), np.zeros(len(p.gpus)), rows_of(p))
        self._cheapest, self._none = np.full(p.n, CHEAPEST), np.zeros(len(p.gpus))
        self._used = 0

    def decode(self, order: Any, wish: Any = None, penalty: Any = None, stopped: Callable[[], bool] = never) -> float:
        """Return the goal of a list, see `serial`; inf if a job that must run has no time, or once `stopped` says so.

        Args:
            order: jobs, (n,).
            wish: of each job, (n,); by default whatever costs least.
            penalty: of each option, (o,); by default none.
            stopped: is asked now and then.
        """
        p, so_far = self.p, (0.0, 0.0, 0)
        given = np.asarray(order, np.int64), self._cheapest if wish is None else np.asarray(wish, np.int64)
        costs = self._none if penalty is None else penalty
        few = max(1, _STEPS // (p.n * p.nodes))
        for begin in range(0, p.n, few):
            so_far = serial(
                *given, costs, self._data, self._room, self.busy, self.made, begin, min(begin + few, p.n), so_far
            )
            if so_far[0] == np.inf or (begin + few < p.n and stopped()):
                return np.inf
        cost, last, self._used = so_far
        return p.constant + float(cost + last if p.makespan else cost)

    def plan(self) -> Any:
        """Return the plan of the schedule built last."""
        return self.p.plan(self.made.option, self.made.start, self.made.rows[:, : self._used])

    def offer(self, run: Run, by: str, order: Any, wish: Any = None, penalty: Any = None) -> float:
        """Offer the schedule of a list unless the run has stopped, and return its goal."""
        goal = np.inf if run.stopped else self.decode(order, wish, penalty, lambda: run.stopped)
        if np.isfinite(goal):
            run.offer(self.plan(), by)
        return goal


def list_of(p: Prepared, degree: prepare.Ints, start: FloatArray) -> tuple[prepare.Ints, prepare.Ints]:
    """Return the list of a plan: (order by start, those left out at the end; wishes)."""
    wish = np.full(p.n, LEFT_OUT)
    for j in np.flatnonzero(degree >= 0).tolist():
        wish[j] = next((o for o in p.options(j) if p.menu[o] == degree[j]), CHEAPEST)
    return np.lexsort((np.arange(p.n), start, degree < 0)), wish
