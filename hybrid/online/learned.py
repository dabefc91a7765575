"""The learned tier: the schedule policy's order of jobs and degrees, and the placement policy's nodes, if they load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.placement import Fleet, GangJob, SpeedModel

from .policy import View

if TYPE_CHECKING:
    from gangplan.learned.placement.online import LearnedGang
    from gangplan.learned.schedule.policy import SchedulePolicy
    from gangplan.solvers.placement.online.gangs import GangPolicy


class LearnedOrder:
    """The order in which the learned schedule policy would start the jobs that wait; a `Ranks`.

    Jobs that it would start later than now are not ranked, and neither are degrees that it did not choose.

    Args:
        policy: its weights; by default those that come with the package, read when they are needed.
    """

    def __init__(self, policy: SchedulePolicy | None = None) -> None:
        self._policy = policy

    def load(self) -> None:
        """Read the weights, and run the network once on a small queue, so that decisions need not wait for it.

        Raises:
            InstanceError: if they are missing or broken.
            ImportError: if torch is not installed.
        """
        from gangplan.learned.schedule.online import Queue, ranked
        from gangplan.learned.schedule.policy import shipped

        self._policy = self._policy or shipped()
        one = np.ones(1, dtype=np.int64)
        ranked([Queue(np.array([0, 1]), one, np.ones(1), np.ones(1), 2, one, np.ones(1))], self._policy)

    def rank(self, view: View) -> tuple[float, ...]:
        """Return the place of each option that is to start now, infinite for others."""
        from gangplan.learned.schedule.online import Queue, ranked

        jobs = view.waiting
        first = np.cumsum([0, *(len(request.job.workers) for request in jobs)])
        running = list(view.running.values())
        queue = Queue(
            first,
            np.array([request.gpus(degree) for request, degree in view.options]),
            np.array([request.lasts(degree) for request, degree in view.options]),
            np.ones(len(jobs)),
            int(view.fleet.gpus[np.array(view.up)].sum()),
            np.array([stint.gpus for stint in running], dtype=np.int64),
            np.array([max(0.0, stint.end - view.now) for stint in running], dtype=float),
        )
        (found,) = ranked([queue], self._policy)
        if np.isnan(found.score).any():
            raise FloatingPointError("the network's scores are not finite")
        scores = np.full(len(queue.gpus), np.inf)
        now = (found.option >= 0) & (found.start <= 0)
        scores[found.option[now]] = found.place[now]
        return tuple(scores.tolist())


class LearnedPlaces:
    """The learned placement policy, told who runs where; what it fails at is the heuristic's.

    Args:
        fleet, speeds: see `Scheduler`.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel) -> None:
        from gangplan.learned.placement.online import LearnedGang

        self._gang: LearnedGang = LearnedGang(fleet, speeds)
        self.note: Callable[[GangJob, dict[int, tuple[int, int]]], None] = self._gang.note
        self.forget: Callable[[str], None] = self._gang.forget

    def policy(self, job: GangJob) -> GangPolicy:
        """Return where it would put a gang, as a function of its room and its workers."""
        return self._gang.policy(job)
