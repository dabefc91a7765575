"""What `Scheduler` tells: decisions, who starts and who stops, and why; of who waits, what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import islice
from sys import float_info
from textwrap import fill
from typing import Any

from gangplan.instances.errors import printable
from gangplan.instances.quantities import counted, moment, quantity

from .moving.mending import Mend

SHOWN = 16
"""Maximum number of candidates and waiting jobs that are named."""
WIDTH = 80
"""Maximum number of columns that are printed."""
ENDS = 256
"""Maximum number of times that running jobs end to see when a job starts."""
SEEN = 256
"""Maximum number of waiting jobs that a simulation has of those that are due, first of a line, first of all, held."""


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
    ends: int = ENDS
    stops: tuple[str, ...] = ()
    whole: int | None = None
    ran: float | None = None
    guess: float | None = None

    def __str__(self) -> str:
        """Return it as lines to be read."""

        def at(time: float) -> str:
            return f"at {moment(time)}, in {span(time - self.now)}"

        degrees = f"{' or '.join(map(str, self.workers))} worker{'s'[: self.workers[-1] - 1]}"
        where = ", which stay together" if self.together and self.workers[-1] > 1 else ""
        shared = f", {self.shared}" if self.shared else ""
        remedies = self.remedies or ("nothing that was tried is enough",) * (self.earliest != self.now)
        ahead = ", ".join(self.ahead) + (" ..." if self.place - 1 > len(self.ahead) else "")
        seen = f", with {self.queue - self.unseen} of the {self.queue} jobs that wait" if self.unseen else ""
        ends = f"within the next {counted(self.ends, 'end')} of jobs{seen}"
        earliest = f"not {ends if self.ends else 'before something else changes'}"
        if self.place > SEEN:
            earliest = f"not simulated: more than {SEEN - 1} jobs are before it"
        if self.earliest is not None:
            simulated = f"{at(self.earliest)}, simulated: if nobody else comes and estimates hold{seen}"
            earliest = f"at once, by the next decision{seen}" if self.earliest == self.now else simulated
        probably = list[tuple[str, str]]()
        if self.earliest != self.now:
            if self.due is not None:
                passed = f"{at(self.due)}; until then others who come may pass it" if self.due > self.now else "now"
                probably.append(("due", "never" if self.due == float_info.max else passed))
            words = "not known: too few jobs like it have waited and started"
            if self.probably is not None:
                low, high = (span(time - self.now) for time in self.probably)
                words = f"between {' and '.join(map(moment, self.probably))}, in {low} to {high}"
                words += ": 9 of 10 jobs do, others who come included"
            probably.append(("probably", words))
            if self.latest is not None:
                probably.append(("at latest", f"{at(self.latest)}, if estimates hold and nobody longer comes"))
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


def span(seconds: float) -> str:
    """Return seconds in words: ``90 s``, ``2.5 h``."""
    return quantity(seconds, "s", 3)


def gpu_hours(gpu_seconds: float) -> str:
    """Return GPU seconds in words: ``41 GPU-hours``."""
    return f"{gpu_seconds / 3600:.3g} GPU-hours"


def wrapped(lines: list[str]) -> list[str]:
    """Return lines of at most `WIDTH` columns; what goes on is indented."""
    return [fill(printable(line), WIDTH, subsequent_indent=" " * 8, drop_whitespace=True) for line in lines]


def listed(rows: list[str]) -> list[str]:
    """Return the first rows, and how many more there are."""
    more = [f"  and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return [*islice(rows, SHOWN), *more]


_ONE = ("number", "now", "tier", "seconds", "more")
"""Fields of a decision that are not lists."""


DRAIN, GAIN = "drain", "gain"
"""Causes of a stop: its nodes close; it is worth it."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job that starts now.

    Attributes:
        job: its name.
        degree: how many workers it has.
        nodes: its GPUs by name of the node.
        tier: who said that it should start.
        seconds: how long it is expected to run there.
        servers: its parameter servers by name of the node, if it has any.
    """

    job: str
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    tier: str
    seconds: float
    servers: Mapping[str, int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """A job that stops now, before anyone starts, and waits again; if it is among the starts too, it goes on elsewhere.

    Attributes:
        job: its name.
        nodes: the GPUs it held by name of the node.
        other: the job that starts there.
        left: seconds that it was expected to run still.
        price: seconds that its GPUs will be held without getting on when it runs again.
        cause: ``gain``, it is worth it; ``priority``, the other is of a higher class; ``reclaim``, the other's queue
            holds less than its share and this one's more; ``turn``, it ran for the most that a job runs; ``move``, it
            goes on elsewhere, since the other is owed room; ``drain``, its nodes close, and no other job is named.
    """

    job: str
    nodes: Mapping[str, tuple[int, ...]] = field(metadata={"signed": True})
    other: str
    left: float
    price: float
    cause: str = GAIN

    def there(self, start: Start) -> int:
        """Return how many of the GPUs that it held a start has."""
        return sum(len({*gpus} & {*start.nodes.get(node, ())}) for node, gpus in self.nodes.items())

    def gains(self, starts: Sequence[Start], stops: Sequence[Stop]) -> bool:
        """Return whether it gains more seconds than it costs.

        Who starts on its GPUs would have waited for it, of the seconds that it had left the share that it has of the
        GPUs which stops free for that start. It waits for the longest of them and pays its price; if it goes on at
        once, it pays its price.

        Args:
            starts: those that were made with the stops.
            stops: all of them; if their jobs start again, that gains nothing.
        """
        again = {stop.job for stop in stops}
        here = [(start, n) for start in starts if start.job != self.job and (n := self.there(start))]
        parts = (n / sum(x.there(start) for x in stops) for start, n in here if start.job not in again)
        goes_on = any(start.job == self.job for start in starts)
        waits = 0.0 if goes_on else max((start.seconds for start, _ in here), default=0.0)
        return self.left * sum(parts) > self.price + waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping(Stop):
    """A job that is told to stop: it holds its GPUs until `Scheduler.stopped` or `finish` says that it has.

    Attributes:
        since: seconds of the user's clock when it was told.
        seconds: its grace; after it the job is among the stops of the next decision.
    """

    since: float
    seconds: float

    @property
    def until(self) -> float:
        """When its grace is over."""
        return self.since + self.seconds


@dataclass(frozen=True, slots=True)
class Decision:
    """Tell what `Scheduler.decide` did.

    Attributes:
        number: counted from 1.
        now: of the user's clock.
        starts: the jobs that start, in the order in which they were chosen; they run from now on.
        tier: the most considered tier that had a say.
        notes: what went wrong on the way and who decided instead.
        seconds: of the machine's clock that it took.
        stops: the jobs that stop first; none unless a stop has a price.
        stopping: the jobs that are told to stop: they hold their GPUs until `Scheduler.stopped` says that they have, or
            their grace is over; then they are among the stops of a later decision.
        mends: those starts that replace what a gang lost with a node, the rest of which stays where it is.
        more: whether the deadline came before all that could start did; `decide` goes on where it was.
    """

    number: int
    now: float
    starts: tuple[Start, ...]
    tier: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    more: bool = False
    stops: tuple[Stop, ...] = ()
    mends: tuple[Mend, ...] = ()
    stopping: tuple[Stopping, ...] = ()

    def then(self, later: Decision) -> Decision:
        """Return this and what goes on with it as one decision: who starts here and stops there does neither."""
        undone = {x.job for x in self.starts} & {x.job for x in later.stops}
        rows: dict[str, Any] = {
            x.name: (*getattr(self, x.name), *getattr(later, x.name)) for x in fields(self) if x.name not in _ONE
        }
        rows["starts"] = (*(x for x in self.starts if x.job not in undone), *later.starts)
        rows["stops"] = (*self.stops, *(x for x in later.stops if x.job not in undone))
        return replace(later, seconds=self.seconds + later.seconds, **rows)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON; parameter servers only where there are some."""
        row = asdict(self)
        row["starts"] = tuple({k: v for k, v in x.items() if k != "servers" or v} for x in row["starts"])
        return row

    def __str__(self) -> str:
        """Return it as lines to be read: who stops, who starts where."""
        rows = [
            f"  stop   {x.job} for {x.other or 'a ' + x.cause}: {span(x.left)} left, {span(x.price)} to pay"
            for x in self.stops
        ]
        rows += [
            f"  tell   {x.job} to stop within {span(x.seconds)} for {x.other or 'a ' + x.cause}" for x in self.stopping
        ]
        for x in self.starts:
            nodes = ", ".join(f"{len(gpus)} on {name}" for name, gpus in x.nodes.items())
            rows.append(f"  start  {x.job}, {counted(x.degree, 'worker')}, for {span(x.seconds)}; GPUs: {nodes}")
        head = f"decision {self.number} at {moment(self.now)}, by {self.tier}, in {span(self.seconds)}"
        rows = listed(rows or ["  nobody starts"])
        rows += ["  the deadline came first: call decide again"] if self.more else []
        return "\n".join(wrapped([head, *rows, *(f"  note: {note}" for note in self.notes)]))


def whole(decide: Callable[[], Decision]) -> Decision:
    """Return a decision with what goes on with it, as long as its deadline cuts it and something starts or stops."""
    made = part = decide()
    while part.more and (part.starts or part.stops):
        made = made.then(part := decide())
    return made
