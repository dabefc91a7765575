"""Hold what `Scheduler.decide` returns: who starts, who stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from gangplan.instances.quantities import counted, moment

from .explaining.explanation import listed, span, wrapped
from .moving.mending import Mend
from .stopping.notices import Stopping

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
    nodes: Mapping[str, tuple[int, ...]]
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
