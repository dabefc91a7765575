"""From keys and penalties to a schedule: jobs by their keys, each at the option that costs least, compiled.

The best of some orders and prices of GPU-seconds, each decoded once, is the base that the scores of a
policy start from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, inner, kernel
from gangplan.solvers.schedule.decode import ORDERS, Schedule, data_of, keep, room_of, rows_of, seat
from gangplan.solvers.schedule.prepare import Prepared
from gangplan.solvers.schedule.profile import Data, Room, clear, find, occupy


class Busy(NamedTuple):
    """What runs already, r parts of jobs: nodes, GPUs there, and until when, (r,)."""

    node: Ints
    gpus: Ints
    until: Floats


@inner
def begin(data: Data, room: Room, busy: Busy) -> None:
    """Leave only what runs already."""
    clear(room, data.per)
    for i in range(len(busy.node)):
        occupy(room, busy.node[i], 0.0, busy.until[i], busy.gpus[i])


@kernel
def place(
    order: Ints, penalty: Floats, out: Floats, problem: Data, profiles: Room, busy: Busy, made: Schedule, finish: Floats
) -> tuple[float, int]:
    """Place the jobs in `order`; return (cost without constant, rows used).

    An option costs slope times its completion, or what it adds to the makespan, and its penalty; leaving a job out
    costs its price and `out`. Each job takes what costs least of all that is in time. One that must run and cannot
    makes the cost inf.

    Args:
        order: int64 (n,), jobs.
        penalty: float64 (o,), in the unit of the goal.
        out: the same of leaving out a job, float64 (n,).
        problem, profiles: see `gangplan.solvers.schedule.decode`.
        busy: what runs already.
        made, finish: written; `finish`: when each option would have ended, float64 (o,).
    """
    data, room = by_reference(problem), by_reference(profiles)
    first, seconds, deadline, slope, price = data.first, data.seconds, data.deadline, data.slope, data.price
    begin(data, room, busy)
    cost, last, used = 0.0, 0.0, 0
    for j in order:
        best, at, nodes, least = -1, 0.0, 0, price[j] + out[j]
        for o in range(first[j], first[j + 1]):
            t, k = find(data, room, j, o, room.spot)
            end = t + seconds[o]
            finish[o] = end
            if not end <= deadline[j]:
                continue
            value = slope[j] * end + penalty[o]
            if data.makespan:
                value += max(0.0, end - last)
            if value < least or (best < 0 and price[j] == np.inf):
                best, at, nodes, least = o, t, k, value
                keep(room, k)
        made.option[j] = best
        if best < 0:
            made.start[j] = 0.0
            cost += price[j]
            if cost == np.inf:
                return cost, used
            continue
        made.start[j] = at
        end = at + seconds[best]
        cost += slope[j] * end
        last = max(last, end)
        used = seat(data, room, j, best, at, nodes, made.rows, used)
    return (cost + last if data.makespan else cost), used


def room_for(p: Prepared, busy: Busy) -> Room:
    """Return what schedules are built in beside what runs already."""
    return room_of(p, len(busy.node))


def idle() -> Busy:
    """Return that nothing runs."""
    return Busy(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


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
            order, penalty, out, self._data, self._room, self.busy,
            Schedule(self.start, self.option, self._rows), self.finish,
        )  # fmt: skip
        return self.p.constant + float(cost)

    def plan(self) -> Any:
        """Return the plan of the schedule decoded last."""
        return self.p.plan(self.option, self.start, self._rows[:, : self._used])


PRICES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0)
"""Of a GPU-second, in units of what it would cost if all jobs but one waited for it while it is used."""
_FIRST = (2.0, 64.0)
"""Those at which every order is tried: the longer the queue, the more expensive are GPU-seconds."""
_AGAIN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A schedule and the list that makes it.

    Attributes:
        cost: the goal; inf if no list fits all jobs that must run.
        order: name of the order.
        price: of a GPU-second, in the units of `PRICES`.
        rank: place of each job in the order of starts, float64 (n,).
        penalty: of each option, float64 (o,).
        out: of leaving out each job, float64 (n,).
        start, option, finish: see `place`.
    """

    cost: float
    order: str
    price: float
    rank: FloatArray
    penalty: FloatArray
    out: FloatArray
    start: FloatArray
    option: Ints
    finish: FloatArray


def base_of(decoder: Decoder, stopped: Callable[[], bool] = lambda: False) -> Base:
    """Return the best of the orders at two prices, then of all prices in that order, settled.

    Once `stopped` says so, no other is tried.
    """
    p = decoder.p
    mean = float(p.slope.mean()) or 1.0 / max(p.cluster.total, 1)
    unit = mean / p.cluster.total * p.gpus * p.seconds
    none, best = np.zeros(p.n), (np.inf, "", _FIRST[0], np.arange(p.n, dtype=float))
    names = [
        n for n in ORDERS if (n != "urgent" or np.isfinite(p.deadline).any()) and (n != "largest" or not p.slope.any())
    ]
    for price in _FIRST:
        for name in names:
            if not stopped():
                best = _try(decoder, name, price, unit, none, best)
    for price in PRICES:
        if price not in _FIRST and not stopped():
            best = _try(decoder, best[1] or "fifo", price, unit, none, best)
    _, name, price, keys = best
    return settled(decoder, keys, price * unit, none, name, price)


def settled(
    decoder: Decoder, keys: FloatArray, penalty: FloatArray, out: FloatArray, name: str = "", price: float = 0.0
) -> Base:
    """Return the schedule of a list, decoded again in the order of its own starts for as long as that helps."""
    cost, rank = decoder.decode(keys, penalty, out), keys
    for _ in range(_AGAIN):
        later = _ranks(np.where(decoder.option < 0, np.inf, decoder.start))
        again = decoder.decode(later, penalty, out)
        if not again <= cost:
            decoder.decode(rank, penalty, out)
            break
        better, cost, rank = again < cost, again, later
        if not better:
            break
    return Base(
        *(cost, name, price, _ranks(rank), penalty, out),
        *(decoder.start.copy(), decoder.option.copy(), decoder.finish.copy()),
    )


def typical(p: Prepared, price: float) -> Ints:
    """Return the option of each job that costs least if it started at once, int64 (n,); 0 where it has none."""
    o = len(p.gpus)
    if not o:
        return np.zeros(p.n, dtype=np.int64)
    # seconds count as they do for a mean job
    value = p.seconds * (1 + price * p.gpus / p.cluster.total)
    order = np.lexsort((np.arange(o), value, p.owner))
    found = np.zeros(p.n, dtype=np.int64)
    some = np.diff(p.first) > 0
    found[some] = order[p.first[:-1][some]]
    return found


def _try(
    decoder: Decoder,
    name: str,
    price: float,
    unit: FloatArray,
    none: FloatArray,
    best: tuple[float, str, float, FloatArray],
) -> tuple[float, str, float, FloatArray]:
    p = decoder.p
    mine = typical(p, price)
    seconds = p.seconds[mine] if len(p.seconds) else none
    work = seconds * p.gpus[mine] if len(p.seconds) else none
    keys = ORDERS[name](p, seconds, work)
    cost = decoder.decode(keys, price * unit, none)
    return (cost, name, price, keys) if cost < best[0] else best


def _ranks(keys: FloatArray) -> FloatArray:
    found = np.empty(len(keys))
    found[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return found
