"""`Scheduler` as a policy of the simulator's engine, so that traces run through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, plain
from gangplan.instances.placement import Demand, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.engine import EngineView
from gangplan.simulator.engine.jobs import Long, Rows

from ..scheduler import Scheduler

_AMPLE = 600.0
"""Seconds a decision may take in a simulation: counted budgets end first, so that runs can be repeated."""


TERMS = ("queue", "user", "title", "priority", "limit")
"""Fields of a trace that a scheduler hears of each job."""
ANY = "any"
"""The model of a job whose trace names none."""


def _named(proximity: Proximity) -> Proximity:
    """Return it with what it says of jobs without a model said of `ANY`."""
    known = proximity.intensity
    return replace(proximity, intensity={**known, ANY: known[""]}) if "" in known else proximity


class SchedulerPolicy:
    """A `Scheduler` as a policy of the engine, for the disciplines ``head`` and ``overtake``, preemptive.

    Before each round of the engine it is told what ended, failed, came up and arrived, and decides once. The engine
    then starts those that it chose where it put them, on as many GPUs of their options as it chose. If the engine has
    a `Proximity`, so has it.

    Args:
        told: whether the durations of the trace are given as estimates, otherwise they are learned from jobs that end;
            or the estimates, of jobs without a choice of GPUs, (n,).
        terms: which of `TERMS` are told.
        accepts: the types of GPU that each job accepts, none for any; by default all do.
        options: of `Scheduler`.
    """

    steady = False
    preemptive = True
    classes = True
    """Whether it knows of priorities by itself."""

    def __init__(
        self, told: bool | FloatArray = True, terms: Sequence[str] = TERMS,
        accepts: Sequence[tuple[str, ...]] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self._told, self._terms, self._accepts, self._options = told, tuple(terms), accepts, options
        self._view: EngineView | None = None
        self.took: list[float] = []
        """Seconds of each decision."""
        self.by = Counter[str]()
        """Starts by tier."""

    def preempt(self, view: EngineView) -> Long:
        """Decide, and return the jobs that stop."""
        if view is not self._view:  # a new simulation
            self._view, self._up = view, view.up.copy()
            near = {"speeds": _named(view.speeds)} if isinstance(view.speeds, Proximity) else {}
            self.scheduler = Scheduler(view.fleet, **near | self._options)
            self._node = {name: i for i, name in enumerate(view.fleet.names)}
            self._runs: set[int] = set()
            self._known: set[int] = set()
            self._plan: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        self._hear(view)
        decision = self.scheduler.decide(_AMPLE, now=view.now)
        self.took.append(decision.seconds)
        self._plan.clear()
        self.by.update(start.tier for start in decision.starts)
        for start in decision.starts:
            where = [(self._node[name], len(gpus)) for name, gpus in start.nodes.items()]
            self._plan[int(start.job)] = start.degree, where
        stops = [int(stop.job) for stop in decision.stops]
        self._runs.difference_update(stops)
        return np.array(stops, dtype=np.int64)

    def wake(self, view: EngineView) -> float:
        """Return when the next job that was told to stop has: at the end of its grace."""
        at = self.scheduler._state.notices.wake(view.now) if view is self._view else None
        return np.inf if at is None else at

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Put those that are to start first."""
        order = {job: float(i) for i, job in enumerate(self._plan)}
        return np.array([order.get(job, np.inf) for job in jobs.tolist()])

    def degree(self, job: int, view: EngineView) -> int:
        """Return the degree chosen."""
        return self._plan[job][0] if job in self._plan else int(view.options.degrees(job)[0])

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Start a job where it was put, or not at all."""
        if job not in self._plan:
            return None
        rest, node, gpus = degree, [], []
        for where, count in self._plan[job][1]:
            node.append(where)
            gpus.append(min(rest, count))
            rest -= gpus[-1]
        self._runs.add(job)
        return Rows(np.array(node), np.array(gpus), np.full(len(node), -1))

    def _hear(self, view: EngineView) -> None:
        """Tell the scheduler what happened since it last decided."""
        scheduler, jobs, running = self.scheduler, view.waiting.tolist(), set(view.running.tolist())
        gone = [job for job in self.scheduler.running if int(job) in self._runs and int(job) not in running]
        self._runs &= running
        for job in gone:
            if int(job) not in jobs:
                scheduler.finish(job, now=view.now)
        for node in np.flatnonzero(self._up & ~view.up).tolist():
            scheduler.fail_node(node, now=view.now)
        for node in np.flatnonzero(~self._up & view.up).tolist():
            scheduler.repair_node(node, now=view.now)
        self._up = view.up.copy()
        for number in jobs:
            if number not in self._known:
                self._known.add(number)
                self._submit(view, number)

    def _submit(self, view: EngineView, job: int) -> None:
        work, options, asked = view.workload, view.options, int(view.workload.gpus[job])
        demand = Demand(1.0, float(work.cpu[job]) / asked, float(work.memory[job]) / asked)  # type: ignore[index]
        types = self._accepts[job] if self._accepts else ()
        degrees = tuple(options.degrees(job).tolist())
        gang = GangJob(str(job), work.model[job] or ANY, degrees, demand, gpu_types=types)
        told: Any = self._told
        if isinstance(told, bool):
            told = options.durations(job).tolist() if told else None
        terms: Any = {name: plain(getattr(work, name)[job]) for name in self._terms}
        if terms.get("limit") == np.inf:
            terms["limit"] = None
        self.scheduler.submit(gang, told[job] if isinstance(told, np.ndarray) else told, now=view.now, **terms)
