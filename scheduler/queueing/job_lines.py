"""What a scheduler knows: what the placer sees of jobs, who waits in which line, what queues and users hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf, nextafter
from sys import float_info
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_number
from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.evolved import Evolved, Sight, Waits
from gangplan.solvers.placement.online.interference import LeastInterference
from gangplan.solvers.placement.online.placer import ANY_MODEL, Placer

from ..durations import Durations, predict_again
from ..moving.mending import Mending
from ..settings import SchedulerSettings, Sharing
from ..starting.bundles import Bundles, EmptyNodes
from ..starting.calendar import Calendar
from ..starting.closeness import Closeness
from ..starting.gpu_types import as_placed, slower_on
from ..stopping.grace import Notices
from ..stopping.running_jobs import EXACT, Nodes, RunningJob, RunningJobs
from .accounts import ALIKE, Accounts, Amounts
from .held_jobs import HeldJobs
from .queue import Shape, WaitingQueue
from .request import Request, renamed

if TYPE_CHECKING:
    from ..starting.learned_speeds import LearnedSpeeds

COME = 4.0
"""Jobs that wait for the GPUs of one that starts, by jobs that wait already."""


_DATE, _DECADE = 1e9, 3.16e8
"""Seconds since 1970 that are taken for a date; seconds of ten years."""


class JobLines:
    """What a scheduler knows, and what is kept beside it so that a decision need not look at all of it.

    Attributes:
        fleet, speeds, settings: see `Scheduler`; speeds say which models run where, `None` if all do.
        places: how slow places are; `None` if all are alike.
        rule: by which jobs go and wait for close places, if any.
        sight: what that rule sees of the cluster, as of the start of a decision.
        up: which nodes are up, (m,).
        holders: of each node, who holds each of its GPUs that is held, (m,).
        waiting, running: jobs by name.
        held: gang and GPUs of each running job, for the verifier.
        finished: names of the last `RECENT` jobs that are done or were withdrawn, the oldest first.
        serial: how many jobs were submitted.
        light: how many wait that need no GPU.
        idle, gpus: GPUs of nodes that are up: those that nobody holds, and all.
        placer, bundles: where gangs fit, and in which bundles.
        sharing, accounts: how queues, users and classes share the cluster, and what each holds.
        queue, due, estimates: who waits in which order, since when jobs are due, how long those without an estimate
            take.
        alike: whether queues and classes made no difference so far, and nobody gives way after a time.
        interference: the rule for nodes where `speeds` are known, told who runs where; `None` without.
        learned: what jobs reported of their speeds; `None` before the first report.
        promises: to jobs that are due, the earliest time at which one was to fit: later, nobody that ends later starts
            before it on its room, though those that run take longer than expected.
        closed: the least number of workers of each kind that did not fit since something last became free.
        later, calendar, mending: the jobs that may not wait yet, the windows in which nodes are closed, and the gangs
            that lost a node since the last decision.
        bounded: whether time may not go on by many years at once.
        notices: who was told to stop, and who claims the room.
        changes: how many events there were.
        undone: how often starts or stops were taken back, which leaves jobs in another order.
    """

    def __init__(
        self,
        fleet: Fleet,
        speeds: SpeedModel | Proximity | None,
        settings: SchedulerSettings,
        rule: Waits | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        usable = fleet.usable
        assert usable is not None
        proximity, speeds = (speeds, None) if isinstance(speeds, Proximity) else (None, speeds)
        self.fleet, self.speeds, self.settings, self.rule = fleet, speeds, settings, rule
        self.bounded, self.sight = True, Sight()
        self.serial, self.changes, self.light, self.undone = 0, 0, 0, 0
        self.up: list[bool] = usable.tolist()
        self.holders: list[dict[int, str]] = [{} for _ in self.up]
        self.waiting: dict[str, Request] = {}
        self.running = RunningJobs()
        self._now = 0.0
        self.held: dict[str, tuple[GangJob, Nodes]] = {}
        self.finished: dict[str, None] = {}
        self.freed: dict[str, float] = {}  # since when jobs that ran wait again
        self.idle = self.gpus = int(fleet.gpus[usable].sum())
        self.later, self.calendar, self.mending = HeldJobs(), Calendar(fleet.names), Mending()
        self.notices = Notices()
        self.placer = Placer(fleet, speeds)
        self.bundles = Bundles(self.placer)
        self.places = None if proximity is None else Closeness(proximity, fleet, self.placer)
        self.sharing = Sharing() if sharing is None else sharing
        self.accounts = Accounts(self.sharing)
        ranks = () if self.accounts.trivial else (self.accounts.place, self.accounts.top)
        self.queue, self.due = WaitingQueue(settings.order, *ranks), WaitingQueue(0.0)
        self.estimates = Durations()
        self.alike = self.accounts.trivial and self.sharing.most_run is None
        self._aging: list[tuple[float, int, str]] = []
        self.interference: LeastInterference | None = None if speeds is None else LeastInterference(fleet, speeds)
        self.learned: LearnedSpeeds | None = None
        self.promises: dict[str, float] = {}
        self.closed: dict[Kind, int] = {}
        self.size = int(fleet.gpus.max(initial=0))
        self._index = {name: node for node, name in enumerate(fleet.names)}
        self._placed: dict[tuple[str, int], GangJob] = {}
        self._kinds: dict[tuple[str, int], tuple[Kind, EmptyNodes]] = {}
        self._count()

    @property
    def now(self) -> float:
        """The latest time that was heard of."""
        return self._now

    @now.setter
    def now(self, value: float) -> None:
        self._now = self.running.now = value
        if self.running.ages:
            self.running.age()

    def advance(self, now: float | None) -> None:
        """Have it be later, and what the clock alone changes; `now` as of `at`."""
        self.now = self.accounts.now = self.at(now)
        if self.calendar.windows and self.calendar.tick(self.now):
            self.closing()
        if self.later.begins:
            self.later.tick(self)
        if self.estimates.learned or self.estimates.stale:
            predict_again(self)
        if isinstance(self.rule, Evolved):  # it sees the cluster as it is, and puts jobs into order by that
            self.sight = Sight.of(len(self.waiting), len(self.running), self.running.logs / EXACT)
            self.queue.order = self.settings.order + self.rule.order(self.sight)

    def at(self, now: float | None) -> float:
        """Return the time of an event: `now`, or that of the last one.

        Raises:
            InstanceError: if it is no number or before the last one.
        """
        if now is None:
            return self.now
        require_number(now := plain(now), "now")
        if now < self.now:
            words = f"{now!r} is before {self.now!r}, when something happened already: report events in their order"
            raise InstanceError("now", f"{words}; set_clock sets a wrong time back")
        most = _DECADE if self.now > _DATE else 100 * _DECADE
        if self.bounded and now - self.now > most:
            words = f"{now!r} is more than {most / _DECADE * 10:g} years after {self.now!r}: seconds are expected"
            raise InstanceError("now", words)
        return float(now)

    def forget(self, request: Request) -> None:
        """Forget what was kept of a job."""
        for degree in request.job.workers:
            self._placed.pop((request.job.name, degree), None)
            self._kinds.pop((request.job.name, degree), None)

    def placed(self, request: Request, degree: int) -> GangJob:
        """Return the gang that the placer sees."""
        key = request.job.name, degree
        if key not in self._placed:
            size = max(request.terms.group, self.bundle(request, degree) if request.together else 0)
            self._placed[key] = self._shared(request, self._told(request.placed(degree, size)), degree)
        return self._placed[key]

    def resemble(self, name: str, like: Request) -> None:
        """Have the placer see a job of this name as another one: quicker than to look at it."""
        for degree in like.job.workers:
            if gang := self._placed.get((like.name, degree)):
                self._placed[name, degree] = renamed(gang, name)

    def loose(self, request: Request) -> GangJob:
        """Return the gang for the placer where it is known which GPUs it gets: bundles do not matter then."""
        return self._told(request.seated if request.job.servers else request.job)

    def bundle(self, request: Request, degree: int, *, up: bool = True) -> int:
        """Return how many workers stick together if they are to, 0 if so many never fit; see `Bundles.size`."""
        gang = self._shared(request, self.loose(request), degree)
        return self.bundles.size(gang, degree, request.terms.group, up=up)

    def kind(self, request: Request, degree: int) -> tuple[Kind, EmptyNodes]:
        """Return the kind of a bundle of so many workers, and the nodes that are up and may have one."""
        key = request.job.name, degree
        if key not in self._kinds:
            gang = self.placed(request, degree)
            self._kinds[key] = Kind.workers(gang), self.bundles.ground(gang)
        return self._kinds[key]

    def ground(self, request: Request, degree: int) -> EmptyNodes:
        """Return the nodes that are up and may have a bundle of so many workers."""
        return self.kind(request, degree)[1]

    @staticmethod
    def differs(request: Request) -> bool:
        """Return whether a job may be on some types of GPU only, or its workers are to be together some way."""
        return bool(request.types or request.job.gpu_types or request.terms.within) or request.terms.group > 1

    def _shared(self, request: Request, gang: GangJob, degree: int) -> GangJob:
        """Return a gang with what its workers share."""
        return as_placed(request, gang, degree) if self.differs(request) else gang

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
        gang = self.placed(request, degree) if loose is None else self._shared(request, loose, degree)
        return self.places.least(gang, request.job.model, request.gpus(degree), now)

    def lasts(self, request: Request, degree: int) -> float:
        """Return the seconds that a job is expected to run at its best place."""
        return request.lasts(degree, self.least(request, degree))

    def hopes(self, request: Request, degree: int, slower: float) -> bool:
        """Return whether a job waits for a place that is less slow, as the rule has it; who is due never does."""
        if not self.running or request.due <= self.now:
            return False
        least = self.least(request, degree)
        return bool(slower > self.most(least, request.gpus(degree), request.lasts(degree), self.now - request.submit))

    def most(self, least: float, gpus: int, seconds: Any, waited: Any) -> Any:
        """Return the largest slowdown with which a job starts by the rule, see `Evolved.most`."""
        rule = self.rule
        if isinstance(rule, Evolved):
            return rule.most(least, gpus, seconds, waited, self.sight)
        return np.inf if rule is None else rule.most(least)

    @property
    def open(self) -> bool:
        """Whether anyone who waits may have room: a GPU is idle, or a job needs none."""
        return self.idle > 0 or self.light > 0

    def asks(self, request: Request, degree: int) -> Amounts:
        """Return what it keeps from others with so many workers, of what queues share."""
        gang = self.placed(request, degree)
        return tuple(gang.workers[0] * need for need in self.kind(request, degree)[0].need[:3])

    def borrows(self, request: Request) -> bool:
        """Return whether a job takes its queue and all above it over their guarantees, with its fewest workers."""
        accounts, degree = self.accounts, request.job.workers[0]
        return bool(self.sharing.queues) and accounts.borrows(accounts.leaf(request.terms), self.asks(request, degree))

    def refuses(self, request: Request, degree: int, gone: Iterable[RunningJob] = ()) -> str | None:
        """Return which limit of its user or queue keeps a job from starting once some are gone, in words."""
        if not self.accounts.bounded:
            return None
        with self.accounts.without((x.request.terms, self.used(x.name)) for x in gone):
            return self.accounts.refuses(request.terms, self.asks(request, degree))

    def used(self, name: str) -> list[int]:
        """Return what a running job holds of what queues share."""
        return [int(x) for x in self.placer.uses(name)[1][:3].sum(axis=1)]

    def _count(self) -> None:
        """Tell the accounts what there is, and is up."""
        whole = self.placer.whole[:3]
        self.accounts.capacity(whole.sum(axis=1).tolist(), (whole * self.up).sum(axis=1).tolist())

    def age(self) -> None:
        """Have jobs that are long past their due time count as of a higher class, unless all were alike so far."""
        aging = self.sharing.aging
        while aging is not None and not self.alike and self._aging and self._aging[0][0] <= self.now:
            _, serial, name = heappop(self._aging)
            if name in self.waiting and self.waiting[name].serial == serial:
                self._reline([name])

    def _level(self, request: Request) -> int:
        """Return the class of a waiting job with what it gained by waiting; note when it gains more."""
        level, aging, gained = request.terms.priority, self.sharing.aging, 0
        if aging is None:
            return level
        if not self.alike:
            gained = int(min(max(0.0, (self.now - request.due) // aging), 2.0**62))
        then = max(request.due + (gained + 1) * aging, nextafter(self.now, inf))  # later than now, rounded or not
        if then < float_info.max:
            heappush(self._aging, (then, request.serial, request.name))
        return level + gained

    def wait(self, request: Request) -> None:
        """Put a job into the queue."""
        self.changes += 1
        self.waiting[request.job.name] = request
        self.alike = self.alike and not request.terms.priority
        self.light += not request.job.worker.gpu
        self._line(request)

    def _line(self, request: Request) -> None:
        """Put a job that waits into its line."""
        job, degree = request.job, request.job.workers[-1]
        kind, calm = Kind.workers(self.placed(request, degree)), "" if request.terms.preempts else "stops nobody"
        alone = job.name if job.apart else calm
        gpus, level, key = request.gpus(degree) or 1, self._level(request), self._key(request)
        intensity = 0.0 if self.places is None else self.places.proximity.slowdown(job.model, 1.0) - 1
        whom = self.calendar.whom(request) if self.calendar.windows else frozenset[str]()
        group = self.accounts.group(request.terms, level) if self.accounts.kept else ALIKE._replace(level=level)
        asks = self.asks(request, job.workers[0]) if self.sharing.queues else ()
        shape = Shape(kind, job.workers, gpus, request.together, alone, intensity, whom, group, asks)
        self.queue.add(request, shape, key)
        self.due.add(request, shape, request.due)

    def _key(self, request: Request) -> float:
        """Return the seconds by which a waiting job goes in its line."""
        degree = request.job.workers[-1]
        slow = 1.0 if self.places is None or self.rule is None else self.least(request, degree, now=False)
        return request.counts(degree) * (slow**self.rule.slowdown if self.rule else 1.0)

    def place(self, request: Request) -> tuple[float, ...]:
        """Return the place of a waiting job among those that are due: classes come first, then times."""
        return -self.due.place(request.name)[0].group.level, request.due, request.serial

    def estimate(self, request: Request) -> None:
        """Have a waiting job be expected to last otherwise; it is due when it was."""
        shape, _ = self.queue.place(request.name)
        self.queue.remove(request.name)
        self.waiting[request.name] = request
        self.queue.add(request, shape, self._key(request))

    def leave(self, name: str) -> Request:
        """Take a job out of the queue and return it."""
        self.changes += 1
        if name in self.later.held:
            return self.later.drop(name)
        self.queue.remove(name)
        self.due.remove(name)
        self.promises.pop(name, None)
        self.notices.claims.pop(name, None)
        request = self.waiting.pop(name)
        self.light -= not request.job.worker.gpu
        return request

    def _pay(self, job: RunningJob, used: np.ndarray, sign: int) -> None:
        """Tell the accounts what a job holds from now on, or no longer, int64 (4, nodes)."""
        self.accounts.now = self.now
        self.accounts.hold(job.request.terms, used[:3].sum(axis=1).tolist(), sign)

    def _reline(self, names: Iterable[str]) -> None:
        """Put jobs into the lines to which they belong now."""
        for name in names:
            self.queue.remove(name)
            self.due.remove(name)
            self._line(self.waiting[name])

    def closing(self) -> None:
        """Note that there are other windows than before: jobs that one lets in have a line of their own."""
        self.changes += 1
        for shape, names in self.queue.lines():
            self._reline(name for name in names if self.calendar.whom(self.waiting[name]) != shape.whom)
