"""One episode: its jobs, the engine gone through instant by instant by whoever decides, and what that earns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, check_fields, limited, require_number
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from ..engine import EngineScheduler, EngineView
from ..engine.jobs import Long, Rows
from ..engine.simulate import conclude, prepare
from ..options import DegreeOptions
from ..outcome import Outcome


class Stretch(NamedTuple):
    """Time in which nothing came or went: jobs that waited and ran, and seconds of work a second of each that ran."""

    seconds: float
    waiting: Long
    running: Long
    rate: FloatArray


Reward = Callable[[EngineView, Stretch], float]
"""What is paid for time that passed; an action earns what passes until the next decision."""


def completion_time(view: EngineView, stretch: Stretch) -> float:
    """Pay minus the seconds that jobs spend waiting and running: over an episode, minus the sum of JCT."""
    return -stretch.seconds * (len(stretch.waiting) + len(stretch.running))


def slowdown(view: EngineView, stretch: Stretch) -> float:
    """Pay the same over each job's duration: over an episode, minus the sum of slowdowns."""
    duration = view.workload.duration[np.concatenate([stretch.waiting, stretch.running])]
    return -stretch.seconds * float((1 / np.where(duration > 0, duration, 1.0)).sum())


def progress(view: EngineView, stretch: Stretch) -> float:
    """Pay the share of its work that each job got done (Harmony): over an episode, the number of jobs."""
    duration = view.workload.duration[stretch.running]
    share = np.divide(stretch.rate, duration, out=np.zeros(len(duration)), where=duration > 0)
    return stretch.seconds * float(share.sum())


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pay the rates of the jobs that run, less a penalty (`hold`) for each that waits, by the second (TopDRL)."""

    hold: float = 1.0

    def __call__(self, view: EngineView, stretch: Stretch) -> float:
        """Return what is paid."""
        return stretch.seconds * (float(stretch.rate.sum()) - self.hold * len(stretch.waiting))


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeCase:
    """The jobs of an episode and their degrees; by default each runs on the GPUs it asked for."""

    workload: Workload
    options: DegreeOptions | None = None


Cases = Callable[[np.random.Generator], EpisodeCase]
"""Draws the case of the next episode; all of its choices come from the generator."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Poisson arrivals of jobs with lognormal durations, at a given load.

    Attributes:
        load: GPU seconds asked for a second over `gpus`.
        sizes: the numbers of GPUs that jobs ask for, each as likely as the others.
        mean: of the durations, whole seconds from 1 up.
        spread: standard deviation of their logarithms.
    """

    gpus: int = limited(32, positive=True)
    jobs: int = limited(30, positive=True)
    load: float = limited(0.9, positive=True)
    sizes: tuple[int, ...] = limited((1, 2, 4, 8), positive=True)
    mean: float = limited(600.0, positive=True)
    spread: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        require_number(len(self.sizes), "sizes", positive=True)

    def __call__(self, rng: np.random.Generator) -> EpisodeCase:
        """Draw a case."""
        gap = self.mean * float(np.mean(self.sizes)) / (self.load * self.gpus)
        duration = rng.lognormal(np.log(self.mean) - self.spread**2 / 2, self.spread, self.jobs)
        return EpisodeCase(
            Workload(
                names=tuple(map(str, range(self.jobs))),
                submit=np.cumsum(rng.exponential(gap, self.jobs)),
                gpus=rng.choice(self.sizes, self.jobs),
                duration=np.maximum(np.round(duration), 1.0),
            )
        )


class EngineEpisode:
    """A run of the engine; `loop`, `state`, `view` and `queue` are the engine's."""

    def __init__(
        self, case: Any, fleet: Fleet, scheduler: EngineScheduler, speeds: SpeedModel | Proximity | None, reward: Reward
    ) -> None:
        if not isinstance(case, EpisodeCase):
            raise InstanceError("case", f"{case!r} is not a Case")
        self.case, self._reward, self._earned = case, reward, 0.0
        self.loop = prepare(case.workload, fleet, scheduler, options=case.options, speeds=speeds)
        self.state, self.view = self.loop.s, self.loop.view
        self.queue = self.state.queue
        self.wanted, self.room = self.loop.decider.wanted, self.loop.decider.room

    def start(self, at: int, degree: int, rows: Rows) -> None:
        """Start the job at a place of the queue."""
        job = int(self.queue.jobs[at])
        self.queue.remove(at)
        self.state.start(job, degree, rows)

    def advance(self) -> bool:
        """Go on to the next instant, the queue in order; return whether there is one."""
        state = self.state
        state.settle()
        before, waiting, running = state.now, self.queue.jobs.copy(), state.running.jobs.copy()
        rate = state.rate[running]
        on = self.loop.advance()
        if state.now > before:
            self._earned += self._reward(self.view, Stretch(state.now - before, waiting, running, rate))
        if on:
            self.loop.decider.sort()
        return on

    def collect(self) -> float:
        """Return what has been earned since this was last asked."""
        earned, self._earned = self._earned, 0.0
        return earned

    @cached_property
    def outcome(self) -> Outcome:
        """The schedule, checked, once there is nothing left to do."""
        return conclude(self.loop, self.case.options)


def plain(
    scheduler: EngineScheduler, taken: str, disciplines: tuple[str, ...] = ("head", "overtake")
) -> EngineScheduler:
    """Return `scheduler` if an environment that makes the decision `taken` itself can go by it for the others."""
    for decision in ("admit", "preempt", "wake", taken):
        if scheduler.part(decision) is not None:
            words = "which the environment decides" if decision == taken else "for which there is no environment yet"
            raise InstanceError("scheduler", f"{scheduler.part(decision)!r} has {decision!r}, {words}")
    for name in ("preemptive", "shared"):
        if getattr(scheduler, name):
            raise InstanceError("scheduler", f"is {name}, for which there is no environment yet")
    if scheduler.discipline not in disciplines:
        raise InstanceError("discipline", f"{scheduler.discipline!r} is not {' or '.join(disciplines)}")
    return scheduler
