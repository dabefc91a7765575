"""What the placer sees of a job, and how long the job takes where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.evolved import Evolved, Sight, Waits
from gangplan.solvers.placement.online.placer import ANY_MODEL

from ..queueing.queue import WaitingQueue
from ..queueing.request import Request
from ..settings import SchedulerSettings
from ..stopping.running_jobs import EXACT, Nodes, RunningJobs
from .bundles import Bundles, EmptyNodes
from .gpu_types import as_placed, slower_on

if TYPE_CHECKING:
    from .closeness import Closeness

COME = 4.0
"""Jobs that wait for the GPUs of one that starts, by jobs that wait already."""


class PlacedJobs:
    """Part of `SchedulerState`, which has all attributes."""

    now: float
    fleet: Fleet
    speeds: SpeedModel | None
    settings: SchedulerSettings
    rule: Waits | None
    sight: Sight
    waiting: dict[str, Request]
    running: RunningJobs
    queue: WaitingQueue
    gpus: int
    places: Closeness | None
    bundles: Bundles
    _placed: dict[tuple[str, int], GangJob]
    _kinds: dict[tuple[str, int], tuple[Kind, EmptyNodes]]

    def placed(self, request: Request, degree: int) -> GangJob:
        """Return the gang that the placer sees."""
        key = request.name, degree
        if key not in self._placed:
            size = max(request.terms.group, self.bundle(request, degree) if request.together else 0)
            self._placed[key] = as_placed(request, self._told(request.placed(degree, size)), degree)
        return self._placed[key]

    def resemble(self, name: str, like: Request) -> None:
        """Have the placer see a job of this name as another one: quicker than to look at it."""
        for degree in like.job.workers:
            if gang := self._placed.get((like.name, degree)):
                self._placed[name, degree] = renamed(gang, name)

    def loose(self, request: Request) -> GangJob:
        """Return the gang for the placer where it is known which GPUs it gets: bundles do not matter then."""
        return self._told(request.seated)

    def bundle(self, request: Request, degree: int, *, up: bool = True) -> int:
        """Return how many workers stick together if they are to, 0 if so many never fit; see `Bundles.size`."""
        gang = as_placed(request, self.loose(request), degree)
        return self.bundles.size(gang, degree, request.terms.group, up=up)

    def kind(self, request: Request, degree: int) -> tuple[Kind, EmptyNodes]:
        """Return the kind of a bundle of so many workers, and the nodes that are up and may have one."""
        key = request.name, degree
        if key not in self._kinds:
            gang = self.placed(request, degree)
            self._kinds[key] = Kind.workers(gang), self.bundles.ground(gang)
        return self._kinds[key]

    def ground(self, request: Request, degree: int) -> EmptyNodes:
        """Return the nodes that are up and may have a bundle of so many workers."""
        return self.kind(request, degree)[1]

    def _told(self, job: GangJob) -> GangJob:
        """Return a gang without its model where models make no difference."""
        return job if self.speeds else replace(job, model=ANY_MODEL)

    def holds(self, request: Request, degree: int) -> int:
        """Return how many GPUs it keeps from others with so many workers: whole nodes if it takes several."""
        job = self.placed(request, degree)
        return job.workers[0] * job.worker.grants

    def degrees(self, request: Request) -> Sequence[int]:
        """Return the numbers of workers to try, the best first: soon done, and with few GPU seconds.

        A GPU that it holds for a second is a second less for those who wait, and for those who come meanwhile, here
        counted as `COME` times as many.
        """
        degrees = request.job.workers
        if len(degrees) == 1:
            return degrees
        others = COME * len(self.waiting) / max(1, self.gpus)
        return sorted(degrees, key=lambda d: (self.lasts(request, d) * (1 + others * request.gpus(d)), d))

    def slower(self, request: Request, degree: int, nodes: Nodes) -> float:
        """Return how many times its seconds a job takes with so many workers on these GPUs."""
        if not request.job.worker.gpu:
            return 1.0
        held = {node: len(gpus) for node, gpus in nodes.items()}
        slow = 1.0 if self.places is None else self.places.slower(request.job.model, request.gpus(degree), held)
        return slow * slower_on(request, degree, self.fleet, nodes) if request.types else slow

    def least(self, request: Request, degree: int, *, now: bool = True) -> float:
        """Return how many times its seconds a job takes at its best place if nobody is there.

        Args:
            request: the job.
            degree: how many workers.
            now: whether workers are together and only nodes that are up count; else it is always the same.
        """
        if self.places is None or not request.job.worker.gpu:
            return 1.0
        loose = None if now else replace(self.loose(request), workers=(degree,))
        gang = self.placed(request, degree) if loose is None else as_placed(request, loose, degree)
        return self.places.least(gang, request.job.model, request.gpus(degree), now)

    def lasts(self, request: Request, degree: int) -> float:
        """Return the seconds that a job is expected to run at its best place."""
        return request.lasts(degree, self.least(request, degree))

    def hopes(self, request: Request, degree: int, slower: float) -> bool:
        """Return whether a job waits for a place that is less slow, as its rule has it; who is due never does."""
        if self.rule is None or not self.running or request.due <= self.now:
            return False
        least = self.least(request, degree)
        return bool(slower > self.most(least, request.gpus(degree), request.lasts(degree), self.now - request.submit))

    def most(self, least: float, gpus: int, seconds: Any, waited: Any) -> Any:
        """Return the largest slowdown with which a job starts by the rule, see `Evolved.most`."""
        rule = self.rule
        if isinstance(rule, Evolved):
            return rule.most(least, gpus, seconds, waited, self.sight)
        return np.inf if rule is None else rule.most(least)

    def look(self) -> None:
        """Have the rule see the cluster as it is, and put jobs into order by that."""
        if isinstance(self.rule, Evolved):
            self.sight = Sight.of(len(self.waiting), len(self.running), self.running.logs / EXACT)
            self.queue.order = self.settings.order + self.rule.order(self.sight)


def renamed(job: GangJob, name: str) -> GangJob:
    """Return a gang with another name, not checked again."""
    other = copy(job)
    object.__setattr__(other, "name", name)
    return other
