"""What an operator decides, as data: what a scheduler is told when it is made, and how jobs share the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from sys import float_info
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import Checked, check_fields, limited, require_text
from gangplan.instances.errors import brief, did_you_mean, require_known, within

EXPENSIVE = 2.0
"""Times its price that a stop has to be worth: who was stopped once is often stopped again."""
PATIENCE = 50.0
"""Times its longest expected seconds that a job waits until it is due."""
MAX_WAIT = 86400.0
"""Seconds that a job waits until it is due, if it is no longer than a tenth of them."""
LEAST = 10.0
"""Times its longest expected seconds before which `max_wait` makes no job due: a cluster can be busy for a day."""
DURATIONS = ("told", "history")
"""What is believed: the seconds that are given, of other jobs the history of those that finished; or that alone."""
STEEPEST = 8
"""The largest exponent of GPUs: beyond it, keys would leave the range of floating-point numbers."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings(Checked):
    """What a scheduler is told when it is made, see `Scheduler`; `ahead`: whether the lookahead chooses the order."""

    together: bool
    reserve: bool
    order: float = field(metadata={"most": STEEPEST})
    ahead: bool
    price: float | None
    patience: float = PATIENCE
    durations: str = limited("told", choices=DURATIONS)
    max_wait: float | None = MAX_WAIT
    grace: float = 0.0

    def due(self, since: float, seconds: float) -> float:
        """Return when a job of so many seconds at most is due that may wait since then."""
        return min(since + self.due_after(seconds), float_info.max)

    def due_after(self, seconds: float) -> float:
        """Return how long a job of so many seconds at most waits until it is due."""
        return min(self.patience * seconds, inf if self.max_wait is None else max(LEAST * seconds, self.max_wait))


EVERYBODY = "*"
"""The user whose limit holds for each user without one."""
AGING = 86400.0
"""Seconds past its due time after which a job counts as one of the next class."""
ROUNDING = 1e-9
"""Share of the cluster by which a sum of decimal shares may be too large."""


@dataclass(frozen=True, slots=True)
class Quota:
    """State what a queue has of the cluster: of GPUs, cores and memory, whichever it has the largest share of.

    Attributes:
        share: guaranteed, from 0 to 1 of the whole cluster.
        most: what it may hold with what it borrows.
        lends: of its guarantee, the share that others may hold while it is idle.
        weight: of its part of what is left over guarantees, among its siblings.
    """

    share: float = limited(0.0, most=1)
    most: float = limited(1.0, most=1)
    lends: float = limited(1.0, most=1)
    weight: float = limited(1.0, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.share > self.most:
            raise InstanceError("share", f"{self.share!r} is more than the most, {self.most!r}")


@dataclass(frozen=True, slots=True)
class Limit(Checked):
    """Bound the GPUs of running jobs, and the running jobs, of one user; `None` where there is no bound."""

    gpus: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Sharing:
    """State how queues, users and classes share a cluster.

    Attributes:
        queues: quotas by dotted path, ``{"research": Quota(.6), "research.nlp": Quota(.3)}``; a number is a guaranteed
            share. The shares of siblings are at most their parent's. Without queues, a job's queue is a word.
        limits: of users by name, ``"*"`` of each user who has none of his own.
        fair_users: whether users of a queue share what it has.
        halflife: seconds in which what was used counts half as much in the order of queues and users; `None` if only
            what they hold now counts.
        preempt: whether a job that finds no room stops jobs of lower classes, and of queues that hold more than their
            share while its own holds less.
        least_run: seconds that a job runs at least before it is stopped.
        most_run: seconds after which it gives way to others of its class, `None` if never.
        aging: seconds past its due time after which a waiting job counts as one of the next class, and so on; `None`
            if never.
    """

    queues: Mapping[str, Quota] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    fair_users: bool = False
    halflife: float | None = limited(None, positive=True)
    preempt: bool = True
    least_run: float = 0.0
    most_run: float | None = limited(None, positive=True)
    aging: float | None = limited(AGING, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "queues", _by_name(Quota, "queues", self.queues))
        object.__setattr__(self, "limits", _by_name(Limit, "limits", self.limits))
        for path in self.queues:
            if not all(path.split(".")):
                raise InstanceError("queues", f"{path!r} has an empty part")
        sums: dict[str, float] = {}
        for path, quota in self.queues.items():
            sums[parent(path)] = sums.get(parent(path), 0.0) + quota.share
        for path, total in sums.items():
            if path and path not in self.queues:
                raise InstanceError("queues", f"{path!r} is not declared, though queues below it are")
            if total > (whole := self.queues[path].share if path else 1.0) + ROUNDING and (not path or whole):
                of = f"those below {path!r}" if path else "the queues"
                raise InstanceError("queues", f"the shares of {of} sum up to {total:g}, more than {whole:g}")

    @classmethod
    def of(cls, given: Sharing | Mapping[str, Any] | None) -> Sharing:
        """Return what is given as a mapping, such as a part of a TOML file."""
        if given is None or isinstance(given, Sharing):
            return given or cls()
        if not isinstance(given, Mapping):
            raise InstanceError("sharing", f"{given!r} is neither a Sharing nor a mapping")
        with within("sharing"):
            require_known(given, [each.name for each in fields(cls)])
            return cls(**given)

    def limit(self, user: str) -> Limit | None:
        """Return what bounds a user."""
        return self.limits.get(user, self.limits.get(EVERYBODY)) if user else None

    def check(self, queue: str) -> None:
        """Raise unless jobs may be submitted to a queue: it is declared and has none below, or no queue is declared."""
        if not self.queues or not queue:
            return
        if queue not in self.queues:
            raise InstanceError(
                "queue",
                f"{queue!r} is not declared; there are {', '.join(self.queues)}{did_you_mean(queue, self.queues)}",
            )
        if below := next((path for path in self.queues if parent(path) == queue), None):
            raise InstanceError("queue", f"{queue!r} has queues below it, such as {below!r}: submit to one of those")


def parent(path: str) -> str:
    """Return the path of the queue above, "" for the whole cluster."""
    return path.rpartition(".")[0]


def _by_name(kind: type[Any], field: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `Quota` or `Limit` for each name, from its fields as a mapping or from the first of them alone."""
    if not isinstance(given, Mapping):
        raise InstanceError(field, f"{brief(given)} is no mapping from names")
    rows = {}
    for name, value in given.items():
        require_text(name, field)
        with within(f"{field}.{name}"):
            try:
                if isinstance(value, Mapping):
                    require_known(value, [each.name for each in fields(kind)])
                each = kind(**value) if isinstance(value, Mapping) else value
                rows[name] = each if isinstance(each, kind) else kind(each)
            except TypeError as error:
                raise InstanceError("", str(error).split(") ")[-1]) from None
    return rows
