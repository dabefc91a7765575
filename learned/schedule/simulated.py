"""The policy in the simulator: whenever something happens, it plans the queue and starts what the plan starts now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.engine.jobs import Long, Rows
from gangplan.simulator.engine.policy import View

from .online import Queue, ranked

if TYPE_CHECKING:
    from .policy import SchedulePolicy


class Learned:
    """Order and degrees by `gangplan.learned.schedule.online.ranked`; it needs to know durations and menus.

    A job that the plan starts later waits, though it may fit now, as long as anything runs.

    Args:
        policy: by default the one that comes with the package.
    """

    preemptive = False
    steady = False

    def __init__(self, policy: SchedulePolicy | None = None) -> None:
        self._policy = policy
        self._degree: dict[int, int] = {}
        self._later: set[int] = set()

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the plan's starts."""
        found = ranked([queue_of(view, jobs)], self._policy)[0]
        gpus = _entries(view, jobs)[1]
        some = found.option >= 0
        degree = np.where(some, gpus[np.maximum(found.option, 0)], gpus.max(initial=1))
        self._degree = dict(zip(jobs.tolist(), degree.tolist(), strict=True))
        self._later = set(jobs[~(found.start <= 0)].tolist()) if len(view.running) else set()
        return found.place.astype(float)

    def degree(self, job: int, view: View) -> int:
        """Return the degree that the plan chose."""
        return self._degree.get(job, int(view.menu.degrees(job)[0]))

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Start what the plan starts now."""
        return None if job in self._later else view.find(job, degree)


def queue_of(view: View, jobs: Long) -> Queue:
    """Return what the policy is told of the jobs that wait and of those that run."""
    first, gpus, seconds = _entries(view, jobs)
    whole = view.workload.duration[jobs]
    share = np.divide(view.left(jobs), whole, out=np.ones(len(jobs)), where=whole > 0)
    running = view.running
    rate = view.rate[running]
    until = np.divide(view.left(running), rate, out=np.full(len(running), 1e9), where=rate > 0)
    return Queue(
        *(first, gpus, seconds * np.repeat(share, np.diff(first)), np.ones(len(jobs))),
        *(int(view.fleet.gpus[view.up].sum()), view.degree[running], until),
    )


def _entries(view: View, jobs: Long) -> tuple[Long, Long, FloatArray]:
    """Return the menus of some jobs, one after the other."""
    menu = view.menu
    size = (menu.first[jobs + 1] - menu.first[jobs]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    entry = np.repeat(menu.first[jobs] - first[:-1], size) + np.arange(first[-1])
    return first, menu.gpus[entry].astype(np.int64), menu.duration[entry]
