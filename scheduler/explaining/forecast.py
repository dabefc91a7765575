"""Forecasts of when a job starts, made in some microseconds: what `StartIntervals` learns from.

GPUs are a fluid here. Those that are idle and those that running jobs leave as they end serve first the work of who
is before the job; it starts when this work is done (`served`), when as many GPUs are free as it needs (`room`), or
when both are so. Who comes later with a smaller key goes before it too, at the rate at which such work came lately.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from ..queueing.queue import WaitingQueue
from ..state import SchedulerState

if TYPE_CHECKING:
    from .intervals import Arrivals

FEATURES = 11
_ROWS = 256
"""Maximum number of running jobs that are looked at; evenly spaced ones count for the others."""
_PLACES = 8
"""Maximum number of jobs of a line that are looked at; evenly spaced ones count for the others."""
_LINES = 64
"""Maximum number of lines that are looked at."""
_FULL = 0.95
"""Maximum share of the GPUs that later jobs take."""
_ROUNDS = 4
"""Number of times that the time is computed again with the work that comes until then."""


def before(queue: WaitingQueue, name: str) -> tuple[int, float, float]:
    """Return how many jobs are before one, the GPUs they need, and GPU seconds."""
    mine, place = queue.place(name)
    count, gpus, work = 0, 0.0, 0.0
    for shape, line in queue.some(_LINES):
        n = bisect_left(line, (place[0] * (mine.gpus / shape.gpus) ** queue.order, place[1], ""))
        if n:
            seen = line[:n] if n <= _PLACES else [line[int((i + 0.5) * n / _PLACES)] for i in range(_PLACES)]
            count, gpus = count + n, gpus + n * shape.gpus
            work += sum(row[0] for row in seen) * n / len(seen) * shape.gpus
    return count, gpus, work


def features(state: SchedulerState, name: str, arrivals: Arrivals) -> np.ndarray:
    """Return what is known of a waiting job, all but one as logarithms, float64 (11,).

    Seconds until it has room, until those before it are served, that with who comes, until there is room for all of
    them; GPUs that it needs, its seconds, how many are before it, how many wait; the share of the GPUs that who comes
    takes; seconds that the first has waited; idle GPUs.
    """
    request, now, gpus = state.waiting[name], state.now, max(state.gpus, 1)
    degree = request.job.workers[0]
    need = state.holds(request, degree)
    count, wide, work = before(state.queue, name)
    table = state.running.table()
    step = -(-len(state.running) // _ROWS) or 1
    rows = np.array([next(state.running.rows(job)) for *_, job in state.running.by_end[::step]], np.intp)
    left = table._replace(end=table.end[rows], since=table.since[rows]).left(now)
    order = left.argsort()
    at, free = np.zeros((2, len(rows) + 1))
    at[1:], free[1:] = left[order], table.wide[rows[order]].cumsum() * step
    free += state.idle
    done = np.zeros(len(at))
    done[1:] = (free[:-1] * (at[1:] - at[:-1])).cumsum()
    last = len(at) - 1

    def room(wanted: float) -> float:
        return float(at[min(int(free.searchsorted(wanted)), last)])

    def served(wanted: float) -> float:
        k = max(int(done.searchsorted(wanted, "right")) - 1, 0)
        return float(at[k] + (wanted - done[k]) / free[k]) if free[k] > 0 else float(at[k])

    rate = arrivals.rate(now, state.queue.key(name), state.queue.order)
    alone = later = served(work)
    for _ in range(_ROUNDS * (rate > 0)):
        later = served(work + min(rate, _FULL * gpus) * later)
    first = next(iter(state.waiting.values())).submit
    found = (room(need), alone, later, room(need + wide), need, request.lasts(degree), count, len(state.waiting))
    x = np.log1p([*found, 0.0, now - first, state.idle])
    x[8] = min(rate / gpus, 3.0)
    rounded: np.ndarray = x.round(4)
    return rounded
