"""Rivals of the study of durations in the simulator's engine: their estimates, and EASY by these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.scheduler.durations import pattern
from gangplan.simulator.engine import EngineScheduler, EngineView
from gangplan.simulator.engine.decide import Decider
from gangplan.simulator.engine.jobs import Long
from gangplan.simulator.engine.policies import Tiresias
from gangplan.simulator.engine.simulate import conclude, prepare
from gangplan.simulator.outcome import Outcome

USUAL = 3600.0
"""Seconds of a job before any has finished."""
THRESHOLDS = {
    "early": (600.0, 6000.0),
    "usual": (3600.0, 36000.0),
    "late": (36000.0, 360000.0),
    "four": (600.0, 3600.0, 21600.0, 129600.0),
}
"""GPU seconds of the queues of Tiresias, of which one is chosen on window 0."""
DECAY = 0.9
"""Weight of a finished job in its mean after the next one (QSSF's rolling estimate)."""


class Told:
    """Estimates that are known at submission."""

    def __init__(self, seconds: FloatArray) -> None:
        self._seconds = seconds

    def of(self, view: EngineView, jobs: Long) -> FloatArray:
        """Return the seconds of jobs."""
        return self._seconds[jobs]


class Rolling:
    """The rolling estimate of QSSF (Hu et al., SC 2021, section 4.2): of the user's jobs with a like title the mean,
    weighted by age; else of the user's with as many GPUs, else of all with as many GPUs, else of all.

    Args:
        named: whether user and title are told.
    """

    def __init__(self, named: bool) -> None:
        self._named, self._view = named, None

    def of(self, view: EngineView, jobs: Long) -> FloatArray:
        """Return the seconds of jobs, as they were expected to be when they came."""
        if view is not self._view:
            self._view = view
            self._mean: dict[object, tuple[float, float]] = {}
            self._known = np.full(view.workload.n_jobs, np.nan)
            self._open: set[int] = set()
        work = view.workload
        if np.isnan(self._known[jobs]).any():
            over = self._open - set(view.waiting.tolist()) - set(view.running.tolist()) - set(jobs.tolist())
            for job in sorted(over):
                for key in self._keys(work, job):
                    total, weight = self._mean.get(key, (0.0, 0.0))
                    self._mean[key] = DECAY * total + work.duration[job], DECAY * weight + 1
            self._open -= over
            for job in jobs[np.isnan(self._known[jobs])].tolist():
                found = next((self._mean[key] for key in self._keys(work, job) if key in self._mean), (USUAL, 1.0))
                self._known[job] = found[0] / found[1]
                self._open.add(job)
        return self._known[jobs]

    def _keys(self, work: Workload, job: int) -> list[object]:
        size, user, queue = int(work.gpus[job]), work.user[job], work.queue[job]
        keys: list[object] = []
        if self._named:
            keys += [(user, pattern(work.title[job]), "title")] if work.title[job] else []
            keys += [(user, size, "user")] if user else []
            keys += [(work.model[job], size, "model")] if work.model[job] else []
            keys += [(queue, size, "queue")] if queue else []
        return [*keys, (size, "size"), "all"]


class Ordered:
    """Jobs in an order that estimates say: ``fifo``, ``sjf``, or ``qssf``, seconds times GPUs."""

    steady = True

    def __init__(self, order: str, estimates: Told | Rolling) -> None:
        self._order, self.estimates = order, estimates

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by submission, seconds or GPU seconds."""
        seconds = self.estimates.of(view, jobs)
        if self._order == "fifo":
            return view.rank[jobs].astype(float)
        return seconds * (view.workload.gpus[jobs] if self._order == "qssf" else 1)


class Estimated(Decider):
    """EASY by estimates: a job that ran longer than expected is expected to run as long again."""

    def __init__(self, scheduler: EngineScheduler, state: object, view: EngineView, estimates: Told | Rolling) -> None:
        super().__init__(scheduler, state, view)  # type: ignore[arg-type]
        self._estimates = estimates

    def _backfill(self, at: int) -> None:
        s = self.s
        s.settle()
        running = s.running.jobs.copy()
        ends, expected = s.end[running], s.since[running] + self._estimates.of(self.view, running)
        s.end[running] = np.where(expected >= s.now, expected, 2 * s.now - s.since[running])
        s.span[s.queue.jobs] = self._estimates.of(self.view, s.queue.jobs)
        super()._backfill(at)
        s.end[running] = ends


def run(
    work: Workload, nodes: int, gpus: int, label: str, estimates: Callable[[], Told | Rolling], price: float
) -> Outcome:
    """Return what a rival makes of a trace: ``fifo``, ``sjf`` or ``qssf`` and a discipline, or ``tiresias`` and its
    thresholds, which stops jobs at a price."""
    name, rule = label.split()
    fleet = Fleet.regular(1, nodes, gpus, cpu=1e15, memory=1e15)
    if name == "tiresias":
        scheduler = EngineScheduler((Tiresias(THRESHOLDS[rule]),), "overtake", True, True)
        loop = prepare(work, fleet, scheduler, preempt_cost=price)
    else:
        policy = Ordered(name, estimates())
        scheduler = EngineScheduler((policy,), rule, True, False)
        loop = prepare(work, fleet, scheduler)
        if rule == "easy":
            loop.decider = Estimated(scheduler, loop.s, loop.view, policy.estimates)
    loop.run()
    return conclude(loop)
