"""The calls of `Scheduler` that say why: of a decision, of a job that waits, runs or may come; and where a job runs."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from math import inf, nextafter
from sys import float_info
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain
from gangplan.instances.placement import GangJob
from gangplan.instances.quantities import counted, moment

from ..decision import ENDS, SEEN, SHOWN, Decision, Explanation, Printed, Stopping, WaitingJob, gpu_hours, span, wrapped
from ..policies.lookahead import worth
from ..queueing.admission import too_few
from ..queueing.queue import in_order
from ..queueing.request import Price, Request, Seconds, TermFields
from ..starting.gpu_types import TypedSeconds, in_words
from ..starting.reservations import reserve
from ..starting.seating import FULL, WINDOW
from ..state import SchedulerState
from ..stopping.leaving import least_ends
from .intervals import StartIntervals

if TYPE_CHECKING:
    from ..scheduler import Scheduler

Change = Callable[["Scheduler"], object]
_STARTS = 256
"""Maximum number of starts that are played to see when a job starts."""
_TAKEN = 2048
"""Number of jobs taken over by what is tried, each trial's counted, at which there are no more trials; 2 there are."""
_TRIED = 8
"""Maximum number of running jobs whose end is tried, one at a time, where room alone is not enough."""


def why_waits(
    state: SchedulerState, name: str, last: str | None, twin: Callable[[Set[str]], Scheduler], intervals: StartIntervals
) -> WaitingJob:
    """Return why a job waits.

    `last` is the reason of the last decision, `None` if the job was not there; `twin` makes a scheduler of the same
    state, to be changed at will, in which only some of those that wait do.
    """
    held, order = state.later.held.get(name), list(in_order(state.queue))
    request = state.later.request(state, name)
    degree, place = request.job.workers[0], len(order) + 1 if held else order.index(name) + 1
    job = state.placed(request, degree)
    fits = state.placer.fits(job)
    seen = _seen(state, name, order)
    earliest, stops, ends = _first_start(twin(seen), name, 2 * ENDS if place <= SEEN else 1)
    bars = state.calendar.bars(request, state.now, state.now + state.lasts(request, degree))
    shut = state.calendar.shut(bars)
    nodes = np.setdiff1d(np.flatnonzero(state.ground(request, degree).nodes), shut)
    wide = request.together and job.workers[0] > 1 and request.job.worker.gpu > 0
    if held and earliest != state.now:
        why = state.later.why(state, name)
    elif earliest == state.now:
        why = "the next decision starts it"
    elif name in state.notices.claims:
        why = state.notices.why(name, state.now)
    elif limit := state.refuses(request, degree):
        why = limit
    elif fits and state.placer.room(job).without(shut).total < job.workers[0]:
        why = f"{WINDOW}: {', '.join(map(str, bars[:SHOWN]))}"
    elif fits:
        first = "it waits for closer GPUs" if state.rule and place == 1 else None
        why = last or first or "there is room for it, but not beside those before it"
        why = why if why != FULL else "there is room for it now, but those before it come first"
    else:
        why = FULL if state.idle or not request.job.worker.gpu else "no GPU is idle"
        if state.ground(request, degree).total < job.workers[0]:
            why = too_few(state, request, degree)
        elif state.kind(request, degree)[0].shared and int(state.placer.room(job).room.sum()) >= job.workers[0]:
            why = "there is room for it, but not where its workers are to be: " + in_words(request)
    return WaitingJob(
        name, state.now, request.submit, why, request.job.workers, state.holds(request, degree), request.together,
        tuple(state.lasts(request, d) for d in request.job.workers), state.idle, int(state.placer.free.max(initial=0)),
        int(state.placer.free[nodes].sum()), fits,
        place, max(place, len(order)), tuple(order[: min(place - 1, SHOWN)]), earliest,
        () if held or earliest == state.now else tuple(_remedies(state, request, order[: place - 1], fits, twin, seen)),
        in_words(request),
        (state.now, state.now) if earliest == state.now else None if held else intervals.predict(state, name),
        None if held else latest_start(state, request),
        None if held or state.ground(request, degree).total < job.workers[0] else request.due,
        len(state.waiting) + len(state.later.held) - len(seen),
        ends,
        stops,
        int((state.placer.free[nodes] == state.fleet.gpus[nodes]).sum()) if wide else None,
        state.freed.get(name),
        request.guess,
    )  # fmt: skip


def _seen(state: SchedulerState, name: str, order: Sequence[str]) -> Set[str]:
    """Return a job that waits and the others that a simulation has: those that go before it, if they are not too many.

    The first of each line are among them, so that nobody left out would be next.
    """
    due = takewhile(lambda other: state.waiting[other].due <= state.now, in_order(state.due))
    held = state.later.held
    before = held[name].before if name in held else ()
    heads = map(state.queue.head, state.queue.shapes())
    some = (islice(names, SEEN) for names in (before, due, heads, order, held))
    return {name, *chain(*some)} & {*state.waiting, *held}


def _first_start(twin: Scheduler, name: str, most: int) -> tuple[float | None, tuple[str, ...], int]:
    """Play on until a job starts; return when, `None` if it takes too long, who stops for it, and how many ended.

    At `most` so many decisions: somebody may be stopped, is due or older as often as one ends.
    """
    twin._state.bounded = False
    stops = {x.job: x.cause for x in twin.stopping if x.other == name}
    ends = starts = 0
    for _ in range(most):
        decision = twin.decide(60.0)
        stops |= {x.job: x.cause for x in decision.stopping if x.other == name}
        stops |= {x.job: x.cause for x in decision.stops if x.other == name}
        if any(start.job == name for start in decision.starts):
            return twin.now, tuple(f"{job} ({cause})" for job, cause in stops.items()), ends
        starts += len(decision.starts)
        running, wake = twin._state.running, twin.wake
        left = {name: job.left(twin.now) for name, job in running.items() if job.stops == inf}
        if (not left and wake is None) or starts > _STARTS:
            break
        now = max(twin.now + min(left.values(), default=inf), nextafter(twin.now, inf))  # who is to end now has not
        if wake is not None and wake < now:
            twin._state.now = wake
            continue
        for ended in [name for name, seconds in left.items() if twin.now + seconds <= now]:
            twin.finish(ended, now=now)
            ends += 1
    return None, (), ends


def latest_start(state: SchedulerState, request: Request) -> float | None:
    """Return when a job starts at the latest, by the rule for those that are due (`Starts`); `None` if it has no bound.

    Once it is due and the k before it have gone, nobody who comes delays it: L seconds after the last one, or after it
    is due, all that ran then have ended.
    """
    differ = state.places is not None or request.types or request.terms.within  # how slow a place is, is not known
    if differ or not state.alike or state.accounts.bounded or state.calendar.windows:
        return None
    degree = request.job.workers[0]
    if state.ground(request, degree).total < state.placed(request, degree).workers[0]:
        return None
    waiting = state.waiting.values()
    runs = [job.left(state.now) + _more(state, job.request) for job in state.running.values()]
    lasts = [max(map(r.lasts, r.job.workers)) + _more(state, r) for r in waiting if r is not request]
    longest = max([0.0, *runs, *lasts])
    before = sum((other.due, other.serial) < (request.due, request.serial) for other in waiting)
    latest = max(request.due, state.now) + (before + 1) * longest
    return latest if latest < float_info.max else None


def _more(state: SchedulerState, request: Request) -> float:
    """Return for how long a job may hold GPUs beside its work."""
    return 0.0 if request.price is None else request.price + state.grace(request)


def _remedies(
    state: SchedulerState, request: Request, ahead: list[str], fits: bool,
    twin: Callable[[Set[str]], Scheduler], seen: Set[str],
) -> Iterator[str]:  # fmt: skip
    """Yield what would let a job start now: tried out with a scheduler of the same state."""
    name, job = request.name, request.job
    trials = max(2, _TAKEN // (len(state.running) + len(seen)))

    def starts(change: Change) -> bool:
        nonlocal trials
        trials -= 1
        if trials < 0:
            return False
        other = twin(seen)
        change(other)
        return any(start.job == name for start in other.decide(60.0).starts)

    def instead(**changes: Any) -> Change:
        def put(other: Scheduler) -> None:
            other._state.forget(other._state.leave(name))
            other._state.wait(replace(request, **changes))

        return put

    def ended(names: list[str]) -> Change:
        return lambda other: [other._state.free(n) for n in names]

    def repaired(other: Scheduler) -> None:
        for node in down:
            other._state.turn(node, True)

    def least(name: str) -> GangJob:
        held = state.waiting[name]
        return state.placed(held, held.job.workers[0])

    down = [i for i, up in enumerate(state.up) if not up]
    blockers = [n for n in ahead if not state.placer.fits(least(n))][:1]
    if blockers and starts(lambda other: other.withdraw(blockers[0])):
        time = reserve(state, least(blockers[0])).time
        shorter = instead(seconds=(time - state.now,) * len(job.workers), left=1.0, again=False)
        if fits and state.now < time < np.inf and starts(shorter):
            yield f"run for at most {span(time - state.now)}, until {blockers[0]} has room"
        yield f"withdraw {blockers[0]}, which is before it and does not fit"
    group, types = request.terms.group, tuple((kind, times[:1]) for kind, times in request.types)

    def too_many(groups: int) -> bool:
        workers = groups * group
        longer = request.seconds[0] * job.workers[0] / workers
        return not starts(instead(job=replace(job, workers=(workers,)), seconds=(longer,), types=types))

    if fewer := bisect_left(range(1, (job.workers[0] - 1) // group + 1), True, key=too_many) * group:
        yield f"submit it with {counted(fewer, 'worker')}"
    if request.together and state.bundle(request, job.workers[0]) > 1 and starts(instead(together=False)):
        yield "submit it with together=False, so that its workers may spread over nodes"
    if down and starts(repaired):
        yield f"repair {', '.join(state.fleet.names[node] for node in down[:SHOWN])}"
    ends, eviction = least_ends(state, request) or ([], None)
    if eviction and not ends:  # there is room, but not where it would go
        least_left = sorted(state.running.values(), key=lambda x: x.left(state.now) * x.gpus)
        if one := next((x for x in least_left[:_TRIED] if starts(ended([x.name]))), None):
            work = gpu_hours(one.left(state.now) * one.gpus)
            yield f"end or stop {one.name} ({counted(one.gpus, 'GPU')}, {work} left)"
    elif eviction and starts(ended(ends)):
        more = f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else ""
        gpus, work = sum(state.running[n].gpus for n in ends), gpu_hours(eviction.cost)
        less = "nothing cheaper" if eviction.proved else f"nothing below {gpu_hours(eviction.bound)}"
        yield f"end or stop {', '.join(ends[:SHOWN])}{more} ({counted(gpus, 'GPU')}, {work} left; {less} makes room)"
    if trials < 0:
        yield "what else may help was not tried: there are too many jobs"


@dataclass(frozen=True, slots=True)
class RunsNow(Printed):
    """Describe a job that runs.

    Attributes:
        now, since: seconds of the user's clock, now and when it started.
        degree: number of workers.
        nodes: its GPUs by name of the node.
        left: seconds that it is expected to run still: as long as it did if it was expected to be done.
        stops: from when on it may be stopped for others, `None` if never.
        price: of a stop, seconds, `None` if it may not be stopped.
        stopping: that it was told to stop, if it was.
    """

    job: str
    now: float
    since: float
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    left: float
    stops: float | None
    price: float | None
    stopping: Stopping | None = None

    @classmethod
    def of(cls, state: SchedulerState, name: str) -> RunsNow:
        """Return what is known of a running job."""
        job = state.running[name]
        stops = job.settled if job.settled < float("inf") else None
        where = state.named(job.nodes)
        told = state.notices.stopping.get(name)
        return cls(name, state.now, job.since, job.degree, where, job.left(state.now), stops, job.request.price, told)

    def __str__(self) -> str:
        """Return it as lines to be read."""
        nodes = ", ".join(f"{len(gpus)} on {node}" for node, gpus in self.nodes.items())
        stops = "it is not stopped for others"
        if self.stops is not None:
            stops = f"it may be stopped for others from {moment(self.stops)} on, which costs {span(self.price or 0.0)}"
        if told := self.stopping:
            whom = f"{told.other} ({told.cause})" if told.other else f"a {told.cause}"
            stops = f"stops in {span(max(0.0, told.until - self.now))}: told to by {whom}, holds its GPUs"
        size = counted(self.degree, "worker")
        lines = [
            f"{self.job} runs since {moment(self.since)}, {size}, for {span(self.left)} still",
            f"  GPUs: {nodes}",
            f"  {stops}",
        ]
        return "\n".join(wrapped(lines))


KEPT = 64
"""Decisions that can be explained."""


class ExplainCalls:
    """Say why. An `InstanceError` names what is wrong."""

    _state: SchedulerState

    def whatif(
        self,
        job: GangJob,
        seconds: Seconds | TypedSeconds = None,
        *,
        together: bool | None = None,
        price: Price = ...,
        **terms: Unpack[TermFields],
    ) -> WaitingJob:
        """Return what `explain` would say of a job were it submitted now; it is not, and nothing changes.

        Args:
            job, seconds, together, price, terms: as of `submit`.
        """
        of = cast("Scheduler", self)
        twin = of._few({*of.waiting})
        twin._intervals.load(of._intervals.save(), twin._state)
        twin.submit(job, seconds, together=together, price=price, **terms)
        told = twin.explain(job.name)
        assert isinstance(told, WaitingJob)
        return told

    @overload
    def explain(self, what: str) -> WaitingJob | RunsNow: ...
    @overload
    def explain(self, what: Decision | int) -> Explanation: ...
    def explain(self, what: Decision | int | str) -> Explanation | WaitingJob | RunsNow:
        """Return why a decision is as it is, why a job waits, or where it runs; to be printed, or read.

        Of a decision, one of the last 64: candidates, scores, which tier decided, the bound, why not the others. Of a
        job, by its name and whether or not a decision has been made since it came: what it needs and what is free, who
        is before it, when it starts if nobody else comes, and what would let it start now. A policy of the user's own
        or a network is not asked for that: the rule decides in its place. Of a running job: where it runs, since when,
        how long still, and if it may be stopped.

        Raises:
            InstanceError: if it is no such decision, or no job that waits or runs.
        """
        of = cast("Scheduler", self)
        if isinstance(what, str):
            if what in self._state.running:
                return RunsNow.of(self._state, what)
            self._state.find(what, "waits")
            return why_waits(self._state, what, of._waits.get(what), of._few, of._intervals)
        number = what.number if isinstance(what, Decision) else plain(what)
        if type(number) is not int or number not in of._explained:
            raise InstanceError("what", f"{number!r} is not one of the last {KEPT}, nor the name of a job")
        found = of._explained[number]
        if number == of._count and of._changes == self._state.changes and self._state.waiting:
            # prices of the last decision that was asked for, a good start for those of now
            of._worth = worth(self._state, of._worth)
            found = dataclasses.replace(found, objective=of._worth.objective, bound=of._worth.bound)
        return found
