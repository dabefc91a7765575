"""Look ahead: by which order jobs go now, found by playing what is there through with each (rollouts)."""

from __future__ import annotations

import time
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.solvers.schedule.waiting import GpuPrices, Waiting, bound

from ..decision import Considered
from ..queueing.queue import in_order
from ..state import SchedulerState
from .rollouts import rollout

ORDERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Exponents of GPUs in the order of jobs: the shortest first with 0, the least work first with 1."""
MOST = 128
"""Maximum number of jobs that are played."""
COLD, WARM = 24, 3
"""Steps of prices of GPU-seconds, without and with those of the last moment."""
FAR = 3.0
"""Horizon as a multiple of the mean time until a job is done: later, other jobs have come."""
_SAME = 1e-9
"""Relative difference up to which two sums of seconds count as equal."""


class RolloutStart(NamedTuple):
    """Hold the n jobs that a rollout starts from.

    Attributes:
        gpus: of the cluster.
        left: seconds of each job on its GPUs, (n,).
        need: GPUs of each job, (n,).
        price: seconds that a stop costs each job, infinite if it may not be stopped, (n,).
        running: which jobs run, (n,).
    """

    gpus: int
    left: FloatArray
    need: NDArray[np.int64]
    price: FloatArray
    running: BoolArray


def scene_of(state: SchedulerState, *, full: bool = False) -> RolloutStart:
    """Return the first jobs that wait, and of those that run as many as there are places, the first to end.

    A `full` one has all that run: the GPUs of the others are nobody's.
    """
    wait = [(r, state.degrees(r)[0]) for r in (state.waiting[name] for name in islice(in_order(state.queue), MOST))]
    table = state.running.table()
    left, wide = table.left(state.now), table.wide
    shown, many = np.flatnonzero(table.head), MOST - len(wait)
    if full:
        many = len(shown)
    if len(shown) > many:
        last = np.partition(left[shown], many)[many]
        shown = shown[left[shown] <= last]
    shown = shown[np.lexsort((table.serial[shown], left[shown]))][:many]
    lasts = [state.lasts(request, degree) for request, degree in wait]
    need = [state.holds(request, degree) for request, degree in wait]
    costs = [(request.price or 0.0) if request.lends else np.inf for request, _ in wait]
    return RolloutStart(
        gpus=state.idle + int(wide[shown].sum()),
        left=np.concatenate([left[shown], np.array(lasts, dtype=float)]),
        need=np.concatenate([wide[shown], np.array(need, dtype=np.int64)]),
        price=np.concatenate([table.price[shown], np.array(costs, dtype=float)]),
        running=np.arange(len(shown) + len(wait)) < len(shown),
    )


class Worth(NamedTuple):
    """Mean seconds that the first jobs still have to be there: simulated, `None` if one never has room, and a bound.

    `prices` of GPU-seconds prove the bound, counted from `now` on.
    """

    objective: float | None
    bound: float
    prices: GpuPrices
    now: float


def worth(state: SchedulerState, before: Worth | None = None) -> Worth:
    """Return what the first jobs that wait and all that run are worth, with the degrees that they have or take first.

    The bound is that of `gangplan.solvers.schedule.waiting`: jobs may be stopped and moved for nothing, unless they are
    never stopped. Prices of the moment `before` are a start: then few steps are enough.
    """
    scene = scene_of(state, full=True)
    played = rollout(scene, state.settings.reserve, state.queue.order)
    jobs = Waiting(max(1, scene.gpus), scene.left, scene.need.astype(float), scene.running & np.isinf(scene.price))
    prices, since = (None, 0.0) if before is None else (before.prices, state.now - before.now)
    total, found = bound(jobs, COLD if before is None else WARM, float(played.sum()), prices, since)
    never = bool(((played == 0) & (scene.left > 0)).any())
    return Worth(None if never else float(played.mean()), total / len(played), found, state.now)


class Lookahead:
    """Choose for each decision the order by which the present jobs are done soonest, near seconds first.

    One step: the next decision chooses anew (rollouts of Bertsekas and Castanon, Journal of Heuristics 1999). A job
    that is done in t seconds costs T (1 - exp(-t / T)), with T `FAR` times the mean of t: those who come before then
    are not played, and change most what is far.

    Args:
        usual: the order that is taken without a rollout, or where none is better.
    """

    def __init__(self, usual: float) -> None:
        self.usual = self.order = usual
        self.found: tuple[float, ...] = ()
        """Mean seconds by order, far ones cut, in the last decision; empty without a lookahead."""
        self.late = False
        """Whether there was no time to look ahead."""
        self._took = 0.0
        """Seconds that the longest rollout lately took."""

    def choose(self, state: SchedulerState, stop: float) -> None:
        """Find the order for a decision, if there is time until `stop` of the machine's clock."""
        self.order, self.found = self.usual, ()
        state.queue.order = self.usual
        wanted = bool(state.waiting) and state.running.stoppable > 0
        self.late = wanted and time.perf_counter() + 1.5 * len(ORDERS) * self._took > stop
        if not wanted or self.late:
            self._took *= 0.9
            return
        scene, ends = scene_of(state), []
        for order in ORDERS:
            began = time.perf_counter()
            ends.append(rollout(scene, state.settings.reserve, order))
            self._took = max(0.9 * self._took, time.perf_counter() - began)
        far = FAR * max(1e-9, min(float(end.mean()) for end in ends))
        self.found = found = tuple(float(far * -np.expm1(-end / far).mean()) for end in ends)
        least = min(found) * (1 + _SAME)
        best = min(range(len(found)), key=lambda i: (max(found[i], least), ORDERS[i] != self.usual))
        self.order = state.queue.order = ORDERS[best]

    def candidates(self) -> tuple[Considered, ...]:
        """Return the orders with the mean time until the jobs are done, seconds, far ones cut."""
        rows, best = [], min(self.found, default=0.0)
        for order, found in zip(ORDERS, self.found, strict=False):
            why = "" if order == self.order else f"{found / best - 1:+.2%}" if best else "no better"
            rows.append(Considered(f"seconds left x GPUs^{order:g}, the least first", found, why))
        return tuple(rows)
