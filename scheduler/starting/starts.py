"""Start jobs while they fit: those that are due, then others in an order, beside reservations for who does not fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.evolved import Evolved

from ..decision import DRAIN, Considered, Start, Stop
from ..moving.mending import Mend
from ..policies.policy import Watchdog
from ..queueing.queue import Alike, QueueWalk, Shape
from ..queueing.request import Request
from ..state import START, STOP, SchedulerState, Trial
from ..stopping.running_jobs import Nodes, RunningJob
from .gpu_types import servers_of
from .seating import CLOSER, DELAY, FULL, WINDOW, Protection, Seating

HELD = "the policy makes it wait"
DUE = "due"
"""The tier of those that are due."""


class StartRound:
    """One round of starts, and of stops that make room for them.

    Nobody waits for ever: who has waited until it is due goes before all others, in the order of these times, and the
    first of them that does not fit is not delayed by anyone. So it starts once those that run now have ended, and then
    the next one is the first. A job that comes when another is due is due later.

    Args:
        state: it is changed.
        watchdog: asks those that may fail, and notes what went wrong.
        stop: of the machine's clock.

    Attributes:
        trial: takes back starts and stops of the round.
        kept: what is kept for those that wait.
        starts: the jobs that started, by name.
        stops: those that stopped, by name.
        waits: why jobs that were looked at wait.
        more: whether the time was up before all that could start did.
        allowed: of jobs that a policy makes wait, the numbers of workers with which it does not.
        hopeful: whether jobs wait for closer GPUs where the scheduler's rule says so.
        scores, mends: what a policy said of jobs, and which gangs were mended.
        preempted, traded: stops that were considered because others may have them, and for a gain.
        gives: whether any running job may give way, and when that was so.
        clear: stops others for a job that does not fit and starts it, if that may be; returns whether it did.
        vain: whether it surely does not for the jobs of a line.
    """

    def __init__(self, state: SchedulerState, watchdog: Watchdog, stop: float = np.inf) -> None:
        self._state, self._watchdog, self._stop = state, watchdog, stop
        self.trial = Trial(state, self._taken_back)
        self.kept = Protection(state)
        self._seating = Seating(state, watchdog, self.trial, self.kept)
        self.starts: dict[str, Start] = {}
        self.stops: dict[str, Stop] = {}
        self.waits: dict[str, str] = {}
        self.allowed: dict[str, frozenset[int]] = {}
        self.more, self.hopeful = False, True
        self.scores, self.mends = list[tuple[str, float]](), list[Mend]()
        self.preempted, self.traded = list[Considered](), list[Considered]()
        self.gives = -1, False
        self.clear: Callable[[Request], bool] | None = None
        self.vain: Callable[[Shape], bool] | None = None
        self._walk: QueueWalk | None = None
        self._fit: dict[tuple[Kind, int], int] = {}  # what fitted, and when
        self._shut: dict[Kind, tuple[tuple[int, int], int]] = {}  # for whom holding is in vain, when; who has no room

    def over(self) -> bool:
        """Return whether the time is up."""
        self.more = self.more or time.perf_counter() >= self._stop
        return self.more

    def degrees(self, request: Request) -> Sequence[int]:
        """Return the numbers of workers to try, the best first: none if a policy makes it wait and it is not due."""
        workers, allowed = request.job.workers, self.allowed.get(request.job.name)
        degrees = workers if len(workers) == 1 else self._state.degrees(request)
        if allowed is None or request.due <= self._state.now:
            return degrees
        return [degree for degree in degrees if degree in allowed]

    def one(
        self,
        name: str,
        degrees: Sequence[int],
        tier: str,
        nodes: Nodes | None = None,
        *,
        hold: bool = True,
        full: bool = False,
    ) -> bool:
        """Start a waiting job if it may; return whether it did.

        Args:
            name: the job.
            degrees: the numbers of workers to try, the best first.
            tier: who says so.
            nodes: where, if that was said too.
            hold: whether nobody may delay it from now on if it does not fit.
            full: whether it is known not to fit.
        """
        state, why, limit = self._state, "", None
        request, bounded = state.waiting[name], state.accounts.bounded
        for degree in degrees:
            if bounded and (refusal := state.refuses(request, degree)) is not None:
                limit = refusal
                continue
            late = bounded and self.kept.later(request, degree)
            seats = DELAY if late else FULL if full else self._seating.seat(request, degree, nodes, self.hopeful)
            if isinstance(seats, str):
                why = seats
                if nodes is not None and why not in (DELAY, WINDOW) and hold:
                    self._watchdog.note(why)
                if why == CLOSER:
                    break  # with fewer or more workers it may take much longer than where it would not go
                continue
            named, job = state.named(seats), state.runs(request, degree, seats)
            self.trial.begin(job)
            lasts = request.lasts(degree, job.slower)
            servers = servers_of(request.job, named) if request.job.servers else {}
            self.starts[name] = Start(name, degree, named, tier, lasts, servers)
            self.trial.note(name, self.starts.pop, name, what=START)
            self.waits.pop(name, None)
            if self.kept.held:
                self.kept.started(name)
            return True
        why = why or limit or HELD  # with other workers it may start once there is room
        if why in (FULL, WINDOW) and hold:
            if self._cleared(request):
                return True
            self.kept.hold(request)
        self.waits[name] = why
        return False

    def _cleared(self, request: Request) -> bool:
        """Return whether others stopped for a job that does not fit, and it started."""
        return self.clear is not None and not self.gave_way(request.name) and self.clear(request)

    def stop(self, job: RunningJob, other: str, cause: str) -> None:
        """Stop a running job for another one."""
        state, price = self._state, job.request.price or 0.0
        self.stops[job.name] = Stop(job.name, state.named(job.nodes), other, job.left(state.now), price, cause)
        self.trial.note(job.name, self.stops.pop, job.name, what=STOP)
        self.trial.halt(job.name)

    def exchange(self, stops: Iterable[tuple[RunningJob, str, str]], starts: Iterable[bool]) -> bool:
        """Stop jobs, each for another one and a cause, and start some; leave all as it was if one does not start.

        Args:
            stops: as of `stop`.
            starts: begins one after the other as it is gone through, and says whether it could.
        """
        with self.trial as trial:
            for job, other, cause in stops:
                self.stop(job, other, cause)
            self.kept.renew()
            if done := all(starts):
                trial.keep()
        return done

    def gave_way(self, name: str) -> bool:
        """Return whether a job stopped in this round for another one: nobody stops for it."""
        return name in self.stops and self.stops[name].cause != DRAIN

    def _limited(self, request: Request) -> bool:
        """Return whether a limit keeps a job, and those behind it in its line, from starting."""
        limit = self._state.refuses(request, request.job.workers[0]) if self._state.accounts.bounded else None
        if limit is not None:
            self.waits[request.name] = limit
        return limit is not None

    def due(self) -> None:
        """Start the jobs that are due, and let nobody delay the first that does not fit."""
        state = self._state
        if state.accounts.bounded:
            self.kept.due()
        ripe: Iterator[Shape] = filter(state.queue.shows, state.due.ripe(state.now))
        walk = QueueWalk(state.due, ripe)
        while (head := walk.next()) and not self.over():
            shape, name = head
            request = state.waiting[name]
            if request.due > state.now or not (state.open or state.running.stoppable):
                break
            if self._limited(request):
                if self._cleared(request):
                    walk.again(shape)
                else:
                    self.kept.keep(request)
                continue
            fits = not self._closed(shape, request) and self.one(name, state.degrees(request), DUE, hold=False)
            if fits or self._cleared(request):
                walk.again(shape)
            else:
                self.waits.setdefault(name, FULL)
                self.kept.hold(request, strict=True)
                if self._apart(request) or self.waits[name] == WINDOW:
                    walk.skip(shape)

    def _apart(self, request: Request) -> bool:
        """Return whether running jobs keep it off their nodes that others like it may use."""
        return bool(self._state.placer.against(self._state.loose(request)))

    def all(self, tier: str) -> None:
        """Go through the queue in the order of its keys, and start whoever may."""
        state = self._state
        self._walk, begun = (walk := QueueWalk(state.queue, idle=self._idle)), len(self.starts)
        rule = isinstance(state.rule, Evolved)
        while (head := walk.next()) and (state.open or self.clear) and not self.over():
            shape, name = head
            if self._idle(state.queue.of(shape)):
                self.waits.setdefault(name, FULL)
                continue
            request = state.waiting[name]
            if self._limited(request):
                if self._cleared(request):
                    walk.again(shape)
                continue
            if not (degrees := self.degrees(request)):
                self.waits[name] = HELD
                walk.skip(shape)
            elif self.one(name, degrees, tier, full=(full := self._closed(shape, request))):
                walk.skip(shape) if rule and not full else walk.again(shape)  # those before it wait still
            elif full:
                continue
            elif rule and self.waits[name] == CLOSER:
                walk.skip(shape, 0 if len(shape.degrees) > 1 else self._also_wait(walk.behind(shape)))
            elif name in self.allowed or self._apart(request):
                walk.skip(shape)  # those behind it may have more to choose from
            elif self.waits[name] == WINDOW and len(shape.degrees) > 1:
                walk.skip(shape)  # they may end sooner with fewer workers
        if len(self.starts) != begun:
            walk.close()
        self._walk = None

    def _also_wait(self, names: Sequence[str]) -> int:
        """Return how many jobs wait for closer GPUs too, of those of its line behind the last that does."""
        state, (last, degree, slower) = self._state, self._seating.far
        some = [state.waiting[name] for name in names]
        seconds, submit, due = np.array([(x.lasts(degree), x.submit, x.due) for x in some]).reshape(-1, 3).T
        most = state.most(state.least(last, degree), last.gpus(degree), seconds, state.now - submit)
        starts = np.flatnonzero((slower <= most) | (due <= state.now))
        return int(starts[0]) if len(starts) else len(names)

    def thaw(self) -> None:
        """Note that something is about to be freed: who does not fit now may then."""
        if self._walk is not None:
            self._walk.thaw()

    def _idle(self, alike: Alike) -> bool:
        """Return whether to look at lines has no effect until something is freed.

        They do not fit, nobody may stop for them, and they hold nothing that is not held.
        """
        shape = alike.shape
        if self.allowed or self.kept.limits or shape.alone or len(shape.degrees) > 1 or not alike.lines:
            return False
        if self.clear is not None and (self.vain is None or not self.vain(shape)):
            return False
        state, kind, stamp = self._state, shape.kind, (len(self.kept.held), self._state.changes)
        seen = self._shut.get(kind)
        if seen is not None and seen[0] == stamp and 0 < seen[1] <= alike.workers:
            return True
        request = state.waiting[state.queue.head(next(iter(alike.lines)))]
        alike.workers = alike.workers or state.placed(request, shape.degrees[0]).workers[0]
        if not self._no_room(kind, alike.workers, request):
            return False
        if (seen is None or seen[0] != stamp) and not self.kept.needless(request, False):
            return False
        self._shut[kind] = stamp, alike.workers
        return True

    def _no_room(self, kind: Kind, workers: int, request: Request) -> bool:
        """Return whether so many workers do not fit."""
        least, key = self._state.closed.get(kind), (kind, workers)
        if least is not None and workers >= least:
            return True
        if self._fit.get(key) == self._state.changes:
            return False
        degree = request.job.workers[0]
        gang = self._state.placed(request, degree)
        if self._state.placer.fits(gang) or self._state.placer.against(gang):
            self._fit[key] = self._state.changes
            return False
        self._seating.full(request, degree)
        return True

    @contextmanager
    def _taken_back(self, names: Collection[str]) -> Iterator[None]:
        """Hold those whose starts are taken back as before, and look at all else anew."""
        due = {name: self._state.running[name].request.due for name in names if name in self.starts}
        yield
        self._state.undone += 1
        self.kept.taken_back({name: time for name, time in due.items() if name not in self.starts})

    def _closed(self, shape: Shape, request: Request) -> bool:
        least = self._state.closed.get(shape.kind)
        if least is None or shape.alone or len(shape.degrees) > 1:
            return False
        return self._state.placed(request, shape.degrees[0]).workers[0] >= least
