"""Who waits in which line, and what queues, users and classes are told that jobs hold."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf, nextafter
from sys import float_info

import numpy as np

from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.placer import Placer

from ..starting.calendar import Calendar
from ..starting.placed_jobs import PlacedJobs
from ..stopping.notices import Notices
from ..stopping.running_jobs import RunningJob
from .accounts import Accounts, Amounts
from .held_jobs import HeldJobs
from .queue import Shape, WaitingQueue
from .request import Request
from .sharing import Sharing


class JobLines(PlacedJobs):
    """Part of `SchedulerState`, which has all attributes."""

    changes: int
    light: int
    alike: bool
    up: list[bool]
    placer: Placer
    sharing: Sharing
    accounts: Accounts
    due: WaitingQueue
    calendar: Calendar
    later: HeldJobs
    notices: Notices
    promises: dict[str, float]
    _aging: list[tuple[float, int, str]]

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
        self.waiting[request.name] = request
        self.alike = self.alike and not request.terms.priority
        self.light += not request.job.worker.gpu
        self._line(request)

    def _line(self, request: Request) -> None:
        """Put a job that waits into its line."""
        job, degree = request.job, request.job.workers[-1]
        kind, calm = Kind.workers(self.placed(request, degree)), "" if request.terms.preempts else "stops nobody"
        alone = job.name if job.apart else calm
        intensity = 0.0 if self.places is None else self.places.proximity.slowdown(job.model, 1.0) - 1
        whom = self.calendar.whom(request)
        group = self.accounts.group(request.terms, self._level(request))
        asks = self.asks(request, job.workers[0]) if self.sharing.queues else ()
        gpus = request.gpus(degree) or 1
        shape = Shape(kind, job.workers, gpus, request.together, alone, intensity, whom, group, asks)
        self.queue.add(request, shape, self._key(request))
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
        if self.accounts.kept:
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
