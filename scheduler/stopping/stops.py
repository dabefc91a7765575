"""Who is stopped for whom: the jobs with the least work left run, and a stop must be worth its price.

The running jobs that may be stopped and the waiting ones are put into one order, GPU seconds left (Smith, Naval
Research Logistics 1956, for jobs that may be interrupted; SRSF with Gu et al., NSDI 2019), what a stop costs counted
against it. As many of the first as have room together are to run. Who of them waits is given room: what is free, else
what running jobs hold that are not among them, else a node that is cleared of jobs that go on elsewhere, so that no
gang waits for room that is there but scattered.

Jobs cannot stop each other for ever. A job stops only after it got on, since it last started, for its price, and for
longer than nothing. So each price that is paid stands beside at least as many GPU seconds in which a job got on, what
stops cost is never more than the work there is, and a job of d seconds with the price p is stopped at most d / p times.
Where stops cost nothing, whoever holds GPUs gets on all the time. A job that was due when it started is not stopped
here at all; a higher class may stop it, and who has less than its share (`preempt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from gangplan.instances.verify.actions import Exchange, verify_stop

from ..decision import GAIN, Start, Stop
from ..explaining.explanation import Considered
from ..queueing.queue import in_order
from ..queueing.request import Request
from ..starting.starts import StartRound
from ..state import SchedulerState
from .parts import RunningParts
from .running_jobs import RunningJob

TIER = "stops"
MOST = 512
"""Waiting jobs for which others may be stopped, the first in order."""


class Stops:
    """One round of stops.

    Args:
        state: it is changed.
        starts: the round of starts that it is part of.

    """

    def __init__(self, state: SchedulerState, starts: StartRound) -> None:
        self._state, self._starts = state, starts
        self._refused: list[Considered] = []
        self._earlier = {*starts.starts}  # of other rounds
        self._counts: dict[str, float] = {}  # seconds of jobs that stopped, as they count in the order

    def run(self) -> None:
        """Stop jobs, and start those for whom they are stopped."""
        state, queue, starts = self._state, self._state.queue, self._starts
        if not state.running.table().movable(state.now).any():
            return
        parts = self._parts = RunningParts(state)
        first = [state.waiting[name] for name in islice(in_order(queue), MOST)]
        claims = state.notices.claims
        first = [x for x in first if x.job.worker.gpu and x.terms.preempts and x.name not in claims]
        first = [x for x in first if starts.degrees(x) and not starts.gave_way(x.name)]
        if not first:
            return
        if not state.idle and min(queue.key(request.name) for request in first) >= parts.key.max():
            return
        pools: dict[tuple[int, int], list[Request]] = {}  # those of a queue that may be on the same nodes compete
        for request in first:
            number = state.ground(request, state.degrees(request)[0]).number
            pools.setdefault((number, state.accounts.leaf(request.terms)), []).append(request)
        with starts.kept.holding():
            rest = {name for pool in pools.values() for name in self._run(pool)}
            held: set[int] = set()  # pools whose first is held, so that those behind it leave it its room
            for request in first:
                if request.name in rest:
                    self._begin(request)
                number = state.ground(request, state.degrees(request)[0]).number
                if number not in held and request.name in state.waiting:
                    starts.kept.hold(request)
                    held.add(number)
            self._settle()

    def _run(self, pool: list[Request]) -> set[str]:
        """Have those of a pool run that are to and may be stopped, the widest first; return the names of the others.

        Who may not be stopped starts after them, beside who is before it in any pool.
        """
        state = self._state
        ground = state.ground(pool[0], state.degrees(pool[0])[0])
        if self._starts.over() or self._parts.none(pool, ground):
            return set()
        self._parts.compete(pool[0])
        chosen = self._parts.choose(pool, ground)
        for request in sorted(chosen, key=lambda r: -state.holds(r, state.degrees(r)[0])):
            if request.price is not None:
                self._begin(request)
        return {request.name for request in chosen if request.price is None}

    def _begin(self, request: Request) -> None:
        """Start a job where there is room, or where others stop for it, if there is time."""
        if not self._starts.over() and not self._starts.one(
            request.name, self._starts.degrees(request), TIER, hold=False
        ):
            self._parts.compete(request)
            self._make_room(request)

    @property
    def stops(self) -> list[Stop]:
        """The jobs that stopped."""
        return [self._starts.stops[name] for name in self._counts]

    @property
    def candidates(self) -> tuple[Considered, ...]:
        """The stops in words, with the seconds that each had left, and those that were refused."""
        made = (Considered(f"{stop.job} gives way to {stop.other}", stop.left) for stop in self.stops)
        return (*made, *self._refused)

    def _make_room(self, request: Request) -> None:
        """Start a job where others are stopped for it, and have those go on that are to; or leave all as it is."""
        state, starts, degree = self._state, self._starts, self._starts.degrees(request)[0]
        shut = state.calendar.closed(request, state.now, state.now + state.lasts(request, degree))
        room = self._parts.find(state.placed(request, degree), state.queue.key(request.name), shut)
        if room is None:
            return
        jobs = [state.running[name] for name in (*room.stopped, *room.moved)]
        exchanges = [self._exchange(job, request, degree, job.name in room.moved) for job in jobs]
        wrong = [words for exchange in exchanges for words in verify_stop(exchange, state.running, state.queue.order)]
        if wrong:
            words = f"{room.stopped + room.moved} give way to {request.name}"
            self._refused.append(Considered(words, request.lasts(degree), wrong[0]))
            return

        def begin() -> Iterator[bool]:
            where = {node: self._seats(node, count, jobs) for node, count in room.nodes.items()}
            yield starts.one(request.name, (degree,), TIER, where, hold=False)
            for job in jobs[len(room.stopped) :]:
                yield starts.one(job.name, (job.degree,), TIER, hold=False)

        if starts.exchange([(job, request.name, GAIN) for job in jobs], begin()):
            for job, exchange in zip(jobs, exchanges, strict=True):
                self._counts[job.name] = exchange.left
                self._parts.leave(job)

    def _seats(self, node: int, count: int, jobs: Sequence[RunningJob]) -> tuple[int, ...]:
        """Return so many idle GPUs of a node, first those that jobs left."""
        left = {gpu for job in jobs for gpu in job.nodes.get(node, ())}
        return tuple(sorted(sorted(self._state.placer.idle(node), key=lambda gpu: gpu not in left)[:count]))

    def _settle(self) -> None:
        """Take back stops that gain no more than they cost, now that all starts are known, and what rests on them.

        Whoever starts on a node of such a job may rest on its GPUs, cores or memory, whoever started after one that
        nobody may delay may delay it, and whoever has the same user or queue may be within its limits by the stop.
        """
        while loss := next((x for x in self.stops if not self._gains(x)), None):
            stops, starts = {loss.job}, set[str]()
            while True:
                where = {node for x in self.stops if x.job in stops for node in x.nodes}
                made = self._made()
                more = {
                    s.job for s in made if s.job in stops or where & {*s.nodes} or self._shares(s.job, stops)
                } | starts
                ahead = next(
                    (i for i, s in enumerate(made) if s.job in more and self._starts.kept.holds(s.job)), len(made)
                )
                more |= {s.job for s in made[ahead:]}
                back = stops | {x.job for x in self.stops if x.other in more or x.job in more}
                if (back, more) == (stops, starts):
                    break
                stops, starts = back, more
            self._starts.trial.back(starts, stops)
            self._counts = {name: left for name, left in self._counts.items() if name not in stops}
            words = f"{loss.job} gives way to {loss.other}"
            self._refused.append(Considered(words, loss.left, "it gains no more than it costs"))

    def _shares(self, name: str, stops: set[str]) -> bool:
        """Return whether a job has the user or queue of one that stopped, if these have limits."""
        accounts, terms = self._state.accounts, self._state.running[name].request.terms
        halted = self._starts.trial.halted
        others = [halted[other].request.terms for other in stops] if accounts.bounded else []
        mine = set(accounts.all[accounts.leaf(terms)].above)
        return any(
            (terms.user and terms.user == other.user) or mine & {*accounts.all[accounts.leaf(other)].above}
            for other in others
        )

    def _made(self) -> list[Start]:
        return [s for s in self._starts.starts.values() if s.tier == TIER and s.job not in self._earlier]

    def _gains(self, stop: Stop) -> bool:
        """Return whether a stop gains more than it costs, in the seconds for which jobs count."""
        return replace(stop, left=self._counts[stop.job]).gains(self._counted(), self.stops)

    def _counted(self) -> list[Start]:
        """Return the starts with the seconds for which they count."""
        now, running = self._state.now, self._state.running
        return [replace(s, seconds=running[s.job].counts(now)) if running[s.job].index else s for s in self._made()]

    def _exchange(self, job: RunningJob, request: Request, degree: int, moved: bool) -> Exchange:
        left, price = job.counts(self._state.now), job.request.price
        lasts, needs = request.counts(degree), request.gpus(degree)
        return Exchange(job.name, price, left, job.gpus, request.name, lasts, needs, moved)
