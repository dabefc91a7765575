"""From keys and penalties to a schedule: jobs by their keys, each at the option that costs least, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, inner, kernel
from gangplan.solvers.schedule.decode import Schedule, data_of, keep, room_of, rows_of, seat
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
