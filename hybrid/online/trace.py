"""`Scheduler` in the simulator: as a policy of the engine, so that traces run through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Demand, GangJob
from gangplan.simulator.engine import View
from gangplan.simulator.engine.rows import Long, Rows

from .scheduler import Scheduler

_AMPLE = 600.0
"""Seconds a decision may take in a simulation: counted budgets end first, so that runs can be repeated."""


class Online:
    """A `Scheduler` as a policy of the engine, for the disciplines ``head`` and ``overtake``.

    Before each round of the engine it is told what ended, failed, came up and arrived, and decides once. The engine
    then starts those that it chose where it put them.

    Args:
        told: whether the durations of the trace are given as estimates; otherwise they are learned from jobs that end.
        options: of `Scheduler`.
    """

    steady = False
    preemptive = True

    def __init__(self, told: bool = True, **options: Any) -> None:
        self._told, self._options = told, options
        self._view: View | None = None
        self.took: list[float] = []
        """Seconds of each decision."""

    def preempt(self, view: View) -> Long:
        """Decide, and return the jobs that stop."""
        if view is not self._view:
            self._begin(view)
        self._hear(view)
        decision = self.scheduler.decide(_AMPLE, now=view.now)
        self.took.append(decision.seconds)
        self._plan.clear()
        for start in decision.starts:
            where = [(self._node[name], len(gpus)) for name, gpus in start.nodes.items()]
            self._plan[int(start.job)] = start.degree, where
        stops = [int(stop.job) for stop in decision.stops]
        for job in stops:
            del self._runs[job]
        return np.array(stops, dtype=np.int64)

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Put those that are to start first."""
        order = {job: float(i) for i, job in enumerate(self._plan)}
        return np.array([order.get(job, np.inf) for job in jobs.tolist()])

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Start a job where it was put, or not at all."""
        if job not in self._plan:
            return None
        rest, node, gpus = degree, [], []
        for where, count in self._plan[job][1]:
            node.append(where)
            gpus.append(min(rest, count))
            rest -= gpus[-1]
        self._runs[job] = view.now
        return Rows(np.array(node), np.array(gpus), np.full(len(node), -1))

    def _begin(self, view: View) -> None:
        self._view = view
        self._node = {name: i for i, name in enumerate(view.fleet.names)}
        self.scheduler = Scheduler(view.fleet, **self._options)
        self._runs: dict[int, float] = {}
        self._known: set[int] = set()
        self._up = view.up.copy()
        self._plan: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def _hear(self, view: View) -> None:
        """Tell the scheduler what happened since it last decided."""
        jobs = view.waiting
        waits, running = set(jobs.tolist()), set(view.running.tolist())
        for job in [job for job in self._runs if job not in running]:
            del self._runs[job]
            if job not in waits:
                self.scheduler.finish(str(job), now=view.now)
        for node in np.flatnonzero(self._up & ~view.up).tolist():
            self.scheduler.fail_node(node, now=view.now)
        for node in np.flatnonzero(~self._up & view.up).tolist():
            self.scheduler.repair_node(node, now=view.now)
        self._up = view.up.copy()
        for job in jobs.tolist():
            if job not in self._known:
                self._known.add(job)
                self._submit(view, job)

    def _submit(self, view: View, job: int) -> None:
        work, menu = view.workload, view.menu
        degrees = tuple(menu.degrees(job).tolist()) if self._elastic else (int(work.gpus[job]),)
        asked = int(work.gpus[job])
        demand = Demand(1.0, float(work.cpu[job]) / asked, float(work.memory[job]) / asked)  # type: ignore[index]
        gang = GangJob(str(job), work.model[job] or "any", degrees, demand)
        seconds = menu.durations(job).tolist() if self._elastic else [float(work.duration[job])]
        self.scheduler.submit(gang, seconds if self._told else None, now=view.now)

    _elastic = False


class Elastic(Online):
    """The same for jobs that may run on several numbers of GPUs, chosen when they start."""

    _elastic = True

    def degree(self, job: int, view: View) -> int:
        """Return the degree chosen."""
        return self._plan[job][0] if job in self._plan else int(view.menu.degrees(job)[0])
