"""Why a decision is as it is, and why a job waits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice, takewhile
from math import inf, nextafter
from sys import float_info
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.errors import printable
from gangplan.instances.placement import GangJob
from gangplan.instances.quantities import counted, moment, quantity

from ..queueing.admission import too_few
from ..queueing.queue_walk import in_order
from ..queueing.request import Request
from ..starting.gpu_types import in_words
from ..starting.reservations import reserve
from ..starting.seating import FULL, WINDOW
from ..state import SchedulerState
from ..stopping.leaving import least_ends
from .intervals import StartIntervals

if TYPE_CHECKING:
    from ..scheduler import Scheduler

Change = Callable[["Scheduler"], object]
SHOWN = 16
"""Maximum number of candidates and waiting jobs that are named."""
WIDTH = 80
"""Maximum number of columns that are printed."""
_ENDS = _STARTS = 256
"""Maximum number of times that running jobs end and of starts that are played to see when a job starts."""
_SEEN = 256
"""Maximum number of waiting jobs that a simulation has of those that are due, first of a line, first of all, held."""
_TAKEN = 2048
"""Number of jobs taken over by what is tried, each trial's counted, at which there are no more trials; 2 there are."""
_TRIED = 8
"""Maximum number of running jobs whose end is tried, one at a time, where room alone is not enough."""


class Printed:
    """Turn what is printed for people into JSON too."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class Considered:
    """Describe something that could have been decided.

    Attributes:
        action: in words.
        score: the less the better: seconds, or what the tier's own scores are in.
        why_not: why it was not chosen, "" if it was.
    """

    action: str
    score: float
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Explanation(Printed):
    """Explain a decision.

    Attributes:
        decision: its number.
        tier: the most considered tier that had a say.
        candidates: what each tier considered.
        waiting: why the first jobs that still wait do, by name; `Scheduler.explain` of a name says more.
        objective: mean seconds until the jobs of then are done in the best candidate's simulation, `None` without one.
        bound: lower bound on this mean.
        notes: of the decision.
    """

    decision: int
    tier: str
    candidates: Mapping[str, tuple[Considered, ...]]
    waiting: Mapping[str, str]
    objective: float | None
    bound: float | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as lines to be read."""
        lines = [f"decision {self.decision}, by {self.tier}"]
        for tier, candidates in self.candidates.items():
            lines.append(f"{tier}, mean seconds until jobs are done:" if tier == "lookahead" else f"{tier}:")
            for c in candidates:
                lines.append(f"  {c.score:10.4g}  {c.action}{'  -- ' + c.why_not if c.why_not else ''}")
        if self.bound is not None:
            found = "" if self.objective is None else f"{span(self.objective)} simulated, "
            lines.append(f"mean time until the jobs of now are done: {found}at least {span(self.bound)}")
        lines += [f"{name} waits: {why}" for name, why in self.waiting.items()]
        return "\n".join(wrapped([*lines, *(f"note: {note}" for note in self.notes)]))


@dataclass(frozen=True, slots=True)
class WaitingJob(Printed):
    """Explain why a job waits.

    Attributes:
        now, submit: seconds of the user's clock, now and when it was submitted.
        why: in a sentence.
        workers: numbers of workers that it may have.
        gpus: GPUs that it needs with the fewest workers, whole nodes if it takes several.
        together: whether workers that fit on one node stay on one, and others take whole nodes.
        seconds: expected time with each number of workers, at its best place.
        idle, largest: idle GPUs of nodes that are up, and the most on one of them.
        usable: idle GPUs of the nodes that may have it by labels, types, sizes and windows.
        fits: whether there is room for it now.
        place, queue: its place in the queue, from 1 on, and the number of jobs that wait.
        ahead: the first jobs before it.
        earliest: when it starts in a simulation by the scheduler's own rules, in which nobody else comes and
            estimates hold; `None` if it does not within the next `ends` ends of jobs, or more than 255 are before it.
        due: until when others who come may pass it; `None` if that is not settled yet.
        unseen, ends: jobs that wait and that the simulation left out, which has the first hundreds; ends of jobs that
            it played.
        stops: the jobs that stop for it by then, and why: ``job3 (reclaim)``.
        whole: nodes of these with nobody on them, `None` if it does not take whole nodes.
        ran: since when it waits again, after it ran and was stopped or lost its node; `None` if it never ran.
        guess: seconds that its user said, if history says how long it takes.
        remedies: what would let it start now, each tried out.
        shared: what its workers share, in words: a rack, a type of GPU.
        probably: between which times it starts in 9 of 10 cases, learned from past waits; `None` before enough.
        latest: when it starts at the latest if estimates hold, nodes stay up, and nobody comes who is due before it or
            runs longer than those that are here; `None` if nodes must come up first.
    """

    job: str
    now: float
    submit: float
    why: str
    workers: tuple[int, ...]
    gpus: int
    together: bool
    seconds: tuple[float, ...]
    idle: int
    largest: int
    usable: int
    fits: bool
    place: int
    queue: int
    ahead: tuple[str, ...]
    earliest: float | None
    remedies: tuple[str, ...]
    shared: str = ""
    probably: tuple[float, float] | None = None
    latest: float | None = None
    due: float | None = None
    unseen: int = 0
    ends: int = _ENDS
    stops: tuple[str, ...] = ()
    whole: int | None = None
    ran: float | None = None
    guess: float | None = None

    def __str__(self) -> str:
        """Return it as lines to be read."""
        degrees = f"{' or '.join(map(str, self.workers))} worker{'s'[: self.workers[-1] - 1]}"
        where = ", which stay together" if self.together and self.workers[-1] > 1 else ""
        shared = f", {self.shared}" if self.shared else ""
        remedies = self.remedies or ("nothing that was tried is enough",) * (self.earliest != self.now)
        ahead = ", ".join(self.ahead) + (" ..." if self.place - 1 > len(self.ahead) else "")
        seen = f", with {self.queue - self.unseen} of the {self.queue} jobs that wait" if self.unseen else ""
        ends = f"within the next {counted(self.ends, 'end')} of jobs{seen}"
        earliest = f"not {ends if self.ends else 'before something else changes'}"
        if self.place > _SEEN:
            earliest = f"not simulated: more than {_SEEN - 1} jobs are before it"
        if self.earliest is not None:
            wait = self.earliest - self.now
            words = f"simulated: if nobody else comes and estimates hold{seen}"
            at = f"at {moment(self.earliest)}, in {span(wait)}, {words}"
            earliest = at if wait else f"at once, by the next decision{seen}"
        probably = []
        if self.due is not None and self.earliest != self.now:
            wait, until = self.due - self.now, f"at {moment(self.due)}, in {span(self.due - self.now)}"
            passed = f"{until}; until then others who come may pass it" if wait > 0 else "now"
            probably.append(("due", "never" if self.due == float_info.max else passed))
        if self.probably is None and self.earliest != self.now:
            probably.append(("probably", "not known: too few jobs like it have waited and started"))
        if self.probably is not None and self.earliest != self.now:
            low, high = (span(time - self.now) for time in self.probably)
            times = " and ".join(map(moment, self.probably))
            probably.append(
                ("probably", f"between {times}, in {low} to {high}: 9 of 10 jobs do, others who come included")
            )
        if self.latest is not None and self.earliest != self.now:
            words = f"at {moment(self.latest)}, in {span(self.latest - self.now)}, if estimates hold"
            words += " and nobody longer comes"
            probably.append(("at latest", words))
        elsewhere = f"; {self.usable} on nodes that may have it" if self.usable < self.idle else ""
        if self.whole is not None:
            elsewhere += f"; nodes wholly free: {self.whole}"
        told = "" if self.guess is None else f" (history; told {span(self.guess)})"
        rows = [
            ("needs", f"{counted(self.gpus, 'GPU')}: {degrees}{where}{shared}; for {span(self.seconds[0])}{told}"),
            ("free", f"{counted(self.idle, 'GPU')}, at most {self.largest} on one node{elsewhere}"),
            ("ahead", f"{self.place - 1} of the {self.queue} jobs that wait{': ' + ahead if ahead else ''}"),
            ("starts", earliest),
            *([("by stopping", ", ".join([*self.stops[:SHOWN], "..."][: len(self.stops)]))] if self.stops else []),
            *probably,
            *(("to start now" if not i else "or", words) for i, words in enumerate(remedies)),
        ]
        again = "" if self.ran is None else f"{moment(self.ran)}, when it ran no more; submitted at "
        head = f"{self.job} waits since {again}{moment(self.submit)}: {self.why}"
        lines = (fill(printable(f"  {name:14}{words}"), WIDTH, subsequent_indent=" " * 16) for name, words in rows)
        return "\n".join([*wrapped([head]), *lines])


def explained(
    number: int, tier: str, starts: set[str], waits: Mapping[str, str],
    scores: list[tuple[str, float]], orders: tuple[Considered, ...], stops: tuple[Considered, ...],
    notes: tuple[str, ...],
) -> Explanation:  # fmt: skip
    """Return what is kept of a decision: the first candidates of each tier, and why the first jobs wait.

    `scores` are those of a policy, the best first; `orders` are the lookahead's.
    """
    rows = []
    for action, score in scores[:SHOWN]:
        name = action.rsplit(" on ", 1)[0]
        rows.append(Considered(action, score, "" if name in starts else waits.get(name, "it was not its turn")))
    found = {"lookahead": orders, "stops": stops[:SHOWN], "policy": tuple(rows)}
    shown = dict(islice(waits.items(), SHOWN))
    return Explanation(number, tier, {k: v for k, v in found.items() if v}, shown, None, None, notes)


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
    earliest, stops, ends = _first_start(twin(seen), name, 2 * _ENDS if place <= _SEEN else 1)
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
        first = "it waits for closer GPUs" if state.patient and place == 1 else None
        why = last or first or "there is room for it, but not beside those before it"
        why = why if why != FULL else "there is room for it now, but those before it come first"
    else:
        why = FULL if state.idle or not request.job.worker.gpu else "no GPU is idle"
        if state.ground(request, degree).total < job.workers[0]:
            why = too_few(state, request, degree)
        elif state.placer.part(job) is not None and int(state.placer.room(job).room.sum()) >= job.workers[0]:
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
    some = (islice(names, _SEEN) for names in (before, due, heads, order, held))
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
            yield f"end or stop {one.name} ({counted(one.gpus, 'GPU')}, {_work(one.left(state.now) * one.gpus)} left)"
    elif eviction and starts(ended(ends)):
        more = f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else ""
        gpus, work = sum(state.running[n].gpus for n in ends), _work(eviction.cost)
        less = "nothing cheaper" if eviction.proved else f"nothing below {_work(eviction.bound)}"
        yield f"end or stop {', '.join(ends[:SHOWN])}{more} ({counted(gpus, 'GPU')}, {work} left; {less} makes room)"
    if trials < 0:
        yield "what else may help was not tried: there are too many jobs"


def _work(gpu_seconds: float) -> str:
    """Return GPU seconds in words: ``41 GPU-hours``."""
    return f"{gpu_seconds / 3600:.3g} GPU-hours"


def span(seconds: float) -> str:
    """Return seconds in words: ``90 s``, ``2.5 h``."""
    return quantity(seconds, "s", 3)


def wrapped(lines: list[str]) -> list[str]:
    """Return lines of at most `WIDTH` columns; what goes on is indented."""
    return [fill(printable(line), WIDTH, subsequent_indent=" " * 8, drop_whitespace=True) for line in lines]


def listed(rows: list[str]) -> list[str]:
    """Return the first rows, and how many more there are."""
    more = [f"  and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return [*islice(rows, SHOWN), *more]
