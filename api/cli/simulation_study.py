"""What `gangplan simulate` is told: how the trace is read, the cluster and its rules, leases, what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_number
from gangplan.simulator.engine.simulate import DISCIPLINE, Rules
from gangplan.simulator.metrics.groups import GROUPINGS

_LASTS = "seconds, for Pollux' workloads, which do not say: bert=7200,ncf=600"
_COLUMNS = "of a CSV, what it calls our columns: id=job,gpus=n,submit=t,duration=s"
_PRICE = "of a stop, as gangplan.Scheduler expects it; several: 600,1800  [default: it stops no job]"
_BY = "also a table of what each user, queue or size class got; several: user,size"
_EPOCH = "when the clock of the trace is 0, like 2026-01-05T00:00  [default: the trace's own dates]"


@dataclass(frozen=True)
class Reading:
    """How the trace is read."""

    section = "The trace"
    queue: Annotated[str | None, "only the jobs of this virtual cluster"] = None
    like: Annotated[bool, "draw a trace like TRACE for each seed"] = False
    lasts: Annotated[str | None, _LASTS, "APP=X,..."] = None
    columns: Annotated[str | None, _COLUMNS, "OURS=NAME,..."] = None
    skip_bad: Annotated[bool, "leave bad rows out and count them"] = False


@dataclass(frozen=True)
class Engine(Rules):
    """The rules, of which there may be several disciplines; prices of stops; how nodes fail."""

    section = "The cluster and its rules"
    discipline: Annotated[list[str] | None, f"{DISCIPLINE}; several: head,easy  [default: head]"] = None
    price: Annotated[Sequence[float] | None, _PRICE, "SECONDS"] = None
    mtbf: Annotated[float | None, "mean time between failures of a node", "SECONDS"] = None
    mttr: Annotated[float | None, "mean time to repair it", "SECONDS"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.mtbf is None) != (self.mttr is None):
            raise InstanceError("mtbf" if self.mtbf is None else "mttr", "is not given; failures need both")
        prices = self.price or ()
        for price in prices:
            require_number(price, "price")
        if len(set(prices)) < len(prices):
            raise InstanceError("price", f"{','.join(f'{x:g}' for x in prices)!r} has one twice")

    @property
    def disciplines(self) -> list[str]:
        """Return the disciplines, each of which is simulated."""
        return several(self.discipline, "discipline") or ["head"]


@dataclass(frozen=True)
class Leases:
    """What rounds are told."""

    section = "In rounds of leases, as Gavel"
    rounds: Annotated[float | None, "how long a lease lasts", "SECONDS"] = None
    throughputs: Annotated[str | None, "Gavel's table of steps a second, for Gavel's traces", "FILE"] = None
    speeds: Annotated[str | None, "of the types, for other traces: v100=1,k80=0.3", "TYPE=X,..."] = None


@dataclass(frozen=True)
class Shown:
    """What is shown."""

    section = "What is shown"
    by: Annotated[list[str] | None, _BY, "user|queue|size"] = None
    gpu_hour_price: Annotated[float | None, "in any currency: what was held and what was idle cost", "X"] = None
    epoch: Annotated[str | None, _EPOCH, "TIME"] = None
    html: Annotated[str | None, "one page with all tables and pictures over calendar time", "FILE"] = None

    def __post_init__(self) -> None:
        require_number(self.gpu_hour_price, "gpu_hour_price", optional=True)
        for name in self.groupings:
            require_choice(name, "by", GROUPINGS)

    @property
    def zero(self) -> float | None:
        """Return the seconds from 1970 to what the clock on the wall shows at time 0, in whatever zone."""
        try:
            return None if self.epoch is None else datetime.fromisoformat(self.epoch).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InstanceError("epoch", f"{self.epoch!r} is no time like 2026-01-05T00:00") from None

    @property
    def groupings(self) -> list[str]:
        """Return by what there are tables."""
        return several(self.by, "by")


def several(given: Sequence[str] | None, field: str) -> list[str]:
    """Return the words that an option was given, once or more often, joined by commas."""
    words = [word.strip() for one in given or () for word in one.split(",")]
    for word in words:
        if words.count(word) > 1:
            raise InstanceError(field, f"{word!r} is given {words.count(word)} times")
    return words


Maker = str | Callable[..., Any]
"""The name of a policy, or what makes one."""


@dataclass(frozen=True)
class Study:
    """A trace, and by what and on what it is simulated; policies by their labels."""

    trace: str
    clusters: Sequence[str]
    policies: Mapping[str, Maker]
    reading: Reading = Reading()
    engine: Engine = Engine()
    leases: Leases = Leases()
