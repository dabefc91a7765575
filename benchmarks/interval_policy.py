"""`Scheduler` as a policy of the simulator of interference: jobs report their speeds each interval."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Demand, GangJob
from gangplan.scheduler.scheduler import Scheduler
from gangplan.systems.interference.environment import Environment

_AMPLE = 600.0
"""Seconds a decision may take in a simulation, so that runs can be repeated."""


class IntervalScheduler:
    """Places what waits, once an interval, where a `Scheduler` says.

    Jobs have no parameter servers. Where workers need a share of a GPU, the scheduler is told of each share as a GPU.

    Args:
        reports: whether jobs report their speeds.
        noise: deviation of the logarithm of what they report.
        seed: of the noise.
        options: of `Scheduler`.

    Attributes:
        scheduler: the scheduler; `None` before the first interval.
        took: processor seconds of each decision.
    """

    def __init__(self, *, reports: bool = True, noise: float = 0.0, seed: int = 0, **options: Any) -> None:
        require_number(noise, "noise")
        self._reports, self._noise, self._rng = reports, noise, np.random.default_rng(seed)
        self._options = options
        self.scheduler: Scheduler | None = None
        self.took: list[float] = []

    def place(self, env: Environment) -> None:
        """Tell the scheduler what happened in the interval, and do what it decides."""
        jobs = env.case.jobs
        if self.scheduler is None:
            share = float(jobs.worker[0, 0])
            slots = round(1 / share) if share < 1 else 1
            if jobs.servers.any() or not np.allclose(jobs.worker[:, 0] * slots, np.round(jobs.worker[:, 0] * slots)):
                raise InstanceError("jobs", "have parameter servers, or workers of unequal shares of a GPU")
            self._slots, self._known = slots, 0
            self._names = [name.rpartition(" x")[0] or name for name in jobs.types.names]  # "VGG x2": two workers
            fleet = replace(env.case.fleet, gpus=env.case.fleet.gpus * slots)
            self._node = {name: i for i, name in enumerate(fleet.names)}
            self.scheduler = Scheduler(fleet, **self._options)
        scheduler = self.scheduler
        if self._reports:
            noise = np.exp(self._noise * self._rng.standard_normal(len(scheduler.running)))
            for name, factor in zip(scheduler.running, noise.tolist(), strict=True):
                scheduler.report(name, float(env.speed[int(name)]) * factor)
        ended = sorted((float(env.finish[int(name)]), name) for name in scheduler.running)
        for end, name in ended:
            if np.isfinite(end):
                scheduler.finish(name, now=max(end, scheduler.now))
        while self._known < len(jobs) and jobs.submit[self._known] <= env.now:
            self._submit(env, self._known)
            self._known += 1
        begin = process_time()
        decision = scheduler.decide(_AMPLE, now=env.now)
        self.took.append(process_time() - begin)
        for start in decision.starts:
            rows, rest = dict[int, tuple[int, int]](), start.degree
            for name, gpus in start.nodes.items():  # a gang on several nodes holds whole ones
                rows[self._node[name]] = min(rest, len(gpus)), 0
                rest -= rows[self._node[name]][0]
            env.place_whole(int(start.job), rows)

    def _submit(self, env: Environment, job: int) -> None:
        jobs, scheduler = env.case.jobs, self.scheduler
        assert scheduler is not None
        gpus, cpu, memory = jobs.worker[job].tolist()
        demand = Demand(float(round(gpus * self._slots)), cpu, memory)
        gang = GangJob(str(job), self._names[jobs.kind[job]], (int(jobs.workers[job]),), demand)
        scheduler.submit(gang, float(env.profiled[job]), now=max(float(jobs.submit[job]), scheduler.now))
