"""Degrees by marginal gain, as Optimus."""

from __future__ import annotations

import heapq

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number

from ..rows import Long, Rows
from ..view import View


class Optimus:
    """Give each GPU to the job that it helps most.

    Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning clusters" (EuroSys 2018): every job
    first gets its least degree, those with least left to do first where not all can have it; then the job goes up its
    menu whose remaining time falls most per GPU, until no GPU is left or helps. Every so often degrees are chosen
    anew; a running job whose degree changes is stopped for it. It needs to know durations and menus.

    Args:
        interval: seconds between choices; a job that arrives in between gets what is free by the same rule.
    """

    preemptive = True
    steady = False

    def __init__(self, interval: float = 600.0) -> None:
        require_number(interval, "interval", positive=True)
        self.interval = interval
        self._view: View | None = None
        self._until = 0.0
        self._target: dict[int, int] = {}

    def preempt(self, view: View) -> Long:
        """Choose degrees if it is time; stop the running jobs whose degrees change."""
        if view is not self._view:
            self._view, self._until = view, view.now
        running = view.running
        if view.now < self._until:
            if len(view.waiting):
                held = {j: int(view.degree[j]) for j in running.tolist()}
                self._target = held | self._shares(view, view.waiting, int(view.free.sum()))
            return np.zeros(0, dtype=np.int64)
        self._until = view.now + self.interval
        jobs = np.concatenate([running, view.waiting])
        self._target = self._shares(view, jobs, int(view.fleet.gpus[view.up].sum()))
        target = np.array([self._target.get(j, 0) for j in running.tolist()], dtype=np.int64)
        return np.asarray(running[target != view.degree[running]])

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the work left, those that get no GPU last."""
        given = np.array([j in self._target for j in jobs.tolist()], dtype=bool)
        return np.where(given, view.left(jobs), np.inf)

    def degree(self, job: int, view: View) -> int:
        """Return the degree chosen."""
        return self._target.get(job, int(view.menu.degrees(job)[0]))

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Start those that get GPUs."""
        return view.find(job, degree) if job in self._target else None

    def wake(self, view: View) -> float:
        """Look again when degrees are to be chosen, if there are jobs."""
        if not len(view.running) and not len(view.waiting):
            return np.inf
        return self._until if self._until > view.now else view.now + self.interval

    def _shares(self, view: View, jobs: Long, free: int) -> dict[int, int]:
        """Return the degrees of the jobs that get GPUs, `free` in all."""
        left, whole = view.left(jobs), view.workload.duration[jobs]
        share = dict(zip(jobs.tolist(), np.divide(left, whole, out=np.zeros(len(jobs)), where=whole > 0), strict=True))
        chosen: dict[int, int] = {}
        gains: list[tuple[float, int, int, int]] = []
        for job in jobs[np.lexsort((view.rank[jobs], left))].tolist():
            least = int(view.menu.degrees(job)[0])
            if least <= free:
                free -= least
                chosen[job] = least
                self._offer(gains, view, job, 0, share[job])
        while gains and free:
            _, job, step, more = heapq.heappop(gains)
            if more <= free:
                free -= more
                chosen[job] = int(view.menu.degrees(job)[step])
                self._offer(gains, view, job, step, share[job])
        return chosen

    def _offer(self, gains: list[tuple[float, int, int, int]], view: View, job: int, step: int, share: float) -> None:
        """Put the next step of a job's menu up, if it helps; `share` of its work is left."""
        degrees, durations = view.menu.degrees(job), view.menu.durations(job)
        if step + 1 < len(degrees):
            more = int(degrees[step + 1] - degrees[step])
            gain = share * float(durations[step] - durations[step + 1]) / more
            if gain > 0:
                heapq.heappush(gains, (-gain, job, step + 1, more))
