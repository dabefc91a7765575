"""Priority lists, and the schedules they make: each job as early as it fits, in the order of the list, compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..compiled.kernel import Floats, Ints, Ints2, by_reference, inner, kernel
from ..run import Run
from .prepare import EARLIEST, Prepared
from .profile import Data, Room, clear, find, new, occupy

_STEPS, _ROOM = 5_000_000, 50_000_000
"""Jobs times jobs times nodes between two looks at the clock; jobs times nodes at most, which is memory."""


class Schedule(NamedTuple):
    """What is written of a schedule of n jobs.

    Attributes:
        start: of each job, 0 if it is left out, (n,).
        option: that it runs with, -1 if it is left out, (n,).
        rows: job, node and GPUs of each part on a node, (3, r).
    """

    start: Floats
    option: Ints
    rows: Ints2


So = tuple[float, float, int]
"""Cost without constant, last completion, rows used."""


@kernel
def serial(
    order: Ints, wish: Ints, problem: Data, profiles: Room, made: Schedule, begin: int, end: int, so_far: So
) -> So:
    """Place the jobs of `order` from `begin` up to `end`, see `listed`."""
    return listed(order, wish, by_reference(problem), by_reference(profiles), made, begin, end, so_far)


@inner
def listed(order: Ints, wish: Ints, data: Data, room: Room, made: Schedule, begin: int, end: int, so_far: So) -> So:
    """Place the jobs of `order` from `begin` up to `end`; return (cost without constant, last completion, rows used).

    A job whose wish is late takes the option that ends first; if that is late too, or costs more than leaving it out,
    it is left out. One that must run and cannot makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        wish: int64 (n,), an option, -1 (leave it out) or -2 (whichever ends first).
        data: the problem.
        room: see `room_of`; cleared before the first of them.
        made: written.
        begin, end: places in `order`.
        so_far: what it returned of those before `begin`, (0.0, 0.0, 0) at the beginning.
    """
    first, seconds, deadline, slope, price = data.first, data.seconds, data.deadline, data.slope, data.price
    cost, last, used = so_far
    for place in range(begin, end):
        j = order[place]
        best, at, nodes = -1, np.inf, 0
        if wish[j] >= 0:
            at, nodes = find(data, room, j, wish[j], room.chosen)
            if at + seconds[wish[j]] <= deadline[j]:
                best = wish[j]
        if best < 0 and wish[j] != -1:
            finish = np.inf
            for o in range(first[j], first[j + 1]):
                t, k = find(data, room, j, o, room.spot)
                if t + seconds[o] < finish:
                    finish, best, at, nodes = t + seconds[o], o, t, k
                    keep(room, k)
            if finish > deadline[j]:
                best = -1
        finish = at + seconds[best] if best >= 0 else np.inf
        if best >= 0 and price[j] < slope[j] * finish + (max(0.0, finish - last) if data.makespan else 0.0):
            best = -1
        made.option[j] = best
        if best < 0:
            made.start[j] = 0.0
            cost += price[j]
            if cost == np.inf:
                return cost, last, used
            continue
        made.start[j] = at
        cost += slope[j] * finish
        last = max(last, finish)
        used = seat(data, room, j, best, at, nodes, made.rows, used)
    return cost, last, used


@inner
def whole(order: Ints, wish: Ints, data: Data, room: Room, made: Schedule) -> float:
    """Place all jobs in `order`; return the cost without constant."""
    clear(room, data.per)
    cost, last, _ = listed(order, wish, data, room, made, 0, len(order), (0.0, 0.0, 0))
    return cost + last if data.makespan else cost


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
    """Return what compiled code reads."""
    c = p.cluster
    size, block_first, server = (np.array(x, dtype=np.int64) for x in (c.size, c.first, c.server))
    return Data(
        *(p.first, p.gpus, p.seconds, p.release, p.deadline, p.slope, p.price),
        *(p.makespan, c.kind, c.gpus, size, block_first, server),
    )


def room_of(p: Prepared, more: int = 0) -> Room:
    """Return what schedules are built in, beside so many rows that are there before."""
    return new(p.cluster.nodes, p.cluster.gpus, p.n + more, p.cluster.total + 1)


def schedule_of(p: Prepared) -> Schedule:
    """Return what any schedule can be written to."""
    return Schedule(np.zeros(p.n), np.zeros(p.n, dtype=np.int64), rows_of(p))


def decode(p: Prepared, order: Ints, wish: Ints) -> tuple[float, Ints, FloatArray, Ints]:
    """Return (goal, option, start, rows) of a list of jobs; see `listed`."""
    made = schedule_of(p)
    given = np.asarray(order, np.int64), np.asarray(wish, np.int64), data_of(p), room_of(p), made
    cost, last, used = serial(*given, 0, p.n, (0.0, 0.0, 0))
    return p.constant + float(cost + (last if p.makespan else 0.0)), made.option, made.start, made.rows[:, :used]


def decoding(p: Prepared, order: Ints, wish: Ints) -> Iterator[float]:
    """Decode a list some jobs at a time; yield inf after each but the last, and the goal at the end."""
    given = np.asarray(order, np.int64), np.asarray(wish, np.int64), data_of(p), room_of(p), schedule_of(p)
    so_far = 0.0, 0.0, 0
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


Order = Callable[[Prepared, FloatArray, FloatArray], FloatArray]
"""Makes keys (ascending is first) of (prepared, seconds and GPU-seconds of each job's option), all float64 (n,)."""


def _urgent(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    # with equal deadlines, or none, the shorter first
    return np.asarray(np.where(np.isfinite(p.deadline), p.deadline, p.release + p.seconds.sum() + seconds))


def _smith(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    gain = np.where(np.isfinite(p.price) & (p.slope == 0), p.price, p.slope)
    return np.asarray(p.release + work / np.maximum(gain, 1e-12 * gain.max() or 1.0) * gain.mean() / p.cluster.total)


Listed = tuple[float, Ints, Ints, str]
ORDERS: dict[str, Order] = {
    "fifo": lambda p, seconds, work: p.release,
    "shortest": lambda p, seconds, work: p.release + seconds,
    "smith": _smith,
    "smith_now": lambda p, seconds, work: work / np.maximum(p.slope, 1e-12 * p.slope.max() or 1.0),
    "urgent": _urgent,
    "largest": lambda p, seconds, work: -work,
}
"""First come first served, shortest, least work a weight (Smith 1956) with and without regard to releases, earliest
deadline, most work."""


def wishes(p: Prepared) -> dict[str, Ints]:
    """Return ways to choose the degrees: options, or `EARLIEST`, int64 (n,)."""
    work = p.gpus * p.seconds
    # as if every job before it had to wait for the cluster: one more second costs as many GPUs
    fair = max(1.0, p.cluster.total / 8)
    return {
        "earliest finish": np.full(p.n, EARLIEST),
        "least work": p.first_least(work, EARLIEST),
        "balanced": p.first_least(work + fair * p.seconds, EARLIEST),
    }


class Lists:
    """Every order with every choice of degrees, decoded one after the other: as far as there is time.

    Attributes:
        best: (goal, order, wish, name) of the best so far; the goal is inf if there is none.
    """

    def __init__(self, p: Prepared) -> None:
        self.p = p
        self.best: Listed = (np.inf, np.arange(p.n), np.full(p.n, EARLIEST), "")
        self._left = self._all()

    def _all(self) -> Iterator[Listed]:
        p = self.p
        if p.n * p.cluster.nodes > _ROOM:
            return  # profiles of all nodes would not fit into memory
        for how, wish in wishes(p).items():
            typical = np.where(wish >= 0, wish, p.first[:-1])
            typical = np.minimum(typical, max(0, len(p.gpus) - 1))
            seconds = p.seconds[typical] if len(p.gpus) else np.zeros(p.n)
            work = seconds * p.gpus[typical] if len(p.gpus) else np.zeros(p.n)
            for name, keys in ORDERS.items():
                order = np.argsort(keys(p, seconds, work), kind="stable")
                for value in decoding(p, order, wish):
                    yield value, order, wish, f"{name}, {how}"

    def __iter__(self) -> Iterator[Listed]:
        """Go on with what has not been decoded; the goal is inf of a list that is not decoded to its end."""
        for found in self._left:
            if found[0] < self.best[0]:
                self.best = found
            yield found


@lru_cache(maxsize=1)
def lists_of(p: Prepared) -> Lists:
    """Return the lists of a problem, which several methods of a solve ask for."""
    return Lists(p)


def start_lists(p: Prepared) -> list[Listed]:
    """Return (goal, order, wish, name) of every order with every choice of degrees, best first."""
    return sorted((found for found in Lists(p) if found[0] < np.inf), key=lambda x: x[0])


def best_list(run: Run, p: Prepared) -> Listed:
    """Return the best list, or the best of those decoded until the run has stopped."""
    known = lists_of(p)
    for _ in known:
        if run.stopped:
            break
    return known.best


def lists(run: Run, p: Prepared) -> None:
    """Offer the best schedule of all priority lists."""
    if run.stopped:
        return
    value, order, wish, name = best_list(run, p)
    if np.isfinite(value):
        _, option, start, rows = decode(p, order, wish)
        run.offer(p.plan(option, start, rows), f"list: {name}")
