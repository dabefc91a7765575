"""One episode: the engine, gone through instant by instant by whoever decides, and what that earns."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import Scheduler
from ..engine.jobs import Rows
from ..engine.simulate import conclude, prepare
from ..options import Menu
from ..outcome import Outcome
from .cases import Case
from .rewards import Reward, Stretch


class Episode:
    """A run of the engine.

    Attributes:
        case: the jobs.
        menu: of the jobs.
        limit: of each job's duration, seconds, float64 (n,); infinite where there is none.
        state, view, queue: of the engine.
    """

    def __init__(
        self, case: Case, fleet: Fleet, scheduler: Scheduler, speeds: SpeedModel | None, reward: Reward
    ) -> None:
        self.case, self._reward = case, reward
        self._loop = prepare(case.workload, fleet, scheduler, menu=case.menu, speeds=speeds)
        self.state, self.view = self._loop.s, self._loop.view
        self.queue, self.menu = self.state.queue, self.state.menu
        n = case.workload.n_jobs
        self.limit: FloatArray = np.full(n, np.inf) if case.limit is None else case.limit
        self._earned = 0.0

    @property
    def may_wait(self) -> bool:
        """Whether something will happen if nobody else starts now."""
        return not self._loop.last

    def wanted(self, job: int) -> int:
        """Return the degree that the scheduler gives a job."""
        return self._loop.decider.wanted(job)

    def room(self, job: int, degree: int) -> Rows | None:
        """Return where the scheduler would put a job now, None if it does not fit."""
        return self._loop.decider.room(job, degree)

    def start(self, at: int, degree: int, rows: Rows) -> None:
        """Start the job at a place of the queue."""
        job = int(self.queue.jobs[at])
        self.queue.remove(at)
        self.state.start(job, degree, rows)
        self._earned += self._reward.starts(self.view, job)

    def reject(self, at: int) -> None:
        """Send the job at a place of the queue away."""
        job = int(self.queue.jobs[at])
        self._loop.reject(at)
        self._earned += self._reward.blocks(self.view, job)

    def advance(self) -> bool:
        """Go on to the next instant, the queue in order; return whether there is one."""
        state = self.state
        state.settle()
        before, waiting, running = state.now, self.queue.jobs.copy(), state.running.jobs.copy()
        rate = state.rate[running]
        on = self._loop.advance()
        if state.now > before:
            stretch = Stretch(state.now - before, waiting, running, rate)
            self._earned += self._reward.passes(self.view, stretch)
        if on:
            self._loop.decider.sort()
        return on

    def collect(self) -> float:
        """Return what has been earned since this was last asked."""
        earned, self._earned = self._earned, 0.0
        return earned

    @cached_property
    def outcome(self) -> Outcome:
        """What came of it, checked, once there is nothing left to do."""
        return conclude(self._loop, self.case.menu)


def plain(scheduler: Scheduler, taken: str) -> Scheduler:
    """Return `scheduler` if an environment that makes the decision `taken` itself can go by it for the others.

    Raises:
        InstanceError: naming what it cannot.
    """
    for decision in ("admit", "preempt", "wake", taken):
        if scheduler.part(decision) is not None:
            words = "which the environment decides" if decision == taken else "for which there is no environment yet"
            raise InstanceError("scheduler", f"{scheduler.part(decision)!r} has {decision!r}, {words}")
    for field in ("preemptive", "shared"):
        if getattr(scheduler, field):
            raise InstanceError("scheduler", f"is {field}, for which there is no environment yet")
    if scheduler.discipline not in ("head", "overtake"):
        raise InstanceError("discipline", f"{scheduler.discipline!r} holds reservations, which an environment does not")
    return scheduler


def check_menu(menu: Menu, degrees: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Raise if a job's menu has a degree that is not one of `degrees`."""
    known = np.isin(menu.gpus, degrees)
    if not known.all():
        entry = int(np.argmin(known))
        job = int(np.searchsorted(menu.first, entry, "right")) - 1
        words = f"job {names[job]} has the degree {menu.gpus[entry]}, which is not among the environment's {degrees}"
        raise InstanceError("menu", words)
