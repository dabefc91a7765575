"""What `gangplan simulate` is told: how the trace is read, the cluster and its rules, leases, what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_number
from gangplan.simulator.metrics.groups import GROUPINGS

from .options import number, wholes

_COLUMNS = "of a CSV, what it calls our columns: id=job,gpus=n,submit=t,duration=s"
_DISCIPLINE = "head (the first blocks), overtake (who fits starts), easy or conservative (backfill); several: head,easy"
_PRICE = "of a stop, as gangplan.Scheduler expects it; several: 600,1800  [default: it stops no job]"
_CONSOLIDATE = "jobs on as few nodes as hold them, or GPUs counted only"
_PREEMPT = "running jobs may be stopped  [default: as the policy would]"
_CHECKPOINT = "after a failure jobs resume from the last checkpoint  [default: from their last start]"
_BY = "also a table of what each user, queue or size class got; several: user,size"
_EPOCH = "when the clock of the trace is 0, like 2026-01-05T00:00  [default: the trace's own dates]"


def _prices(text: str) -> tuple[float, ...]:
    return tuple(map(number, text.split(",")))


@dataclass(frozen=True)
class Reading:
    """How the trace is read."""

    section = "The trace"
    queue: Annotated[str | None, "only the jobs of this virtual cluster"] = None
    like: Annotated[bool, "draw a trace like TRACE for each seed"] = False
    lasts: Annotated[str, "seconds, for Pollux' workloads, which do not say: bert=7200,ncf=600", "APP=X,..."] = ""
    columns: Annotated[str, _COLUMNS, "OURS=NAME,..."] = ""
    skip_bad: Annotated[bool, "leave bad rows out and count them"] = False


@dataclass(frozen=True)
class Engine:
    """Arguments of `simulate_named`, of several simulations where they are joined by commas, and how nodes fail."""

    section = "The cluster and its rules"
    discipline: Annotated[list[str] | None, f"{_DISCIPLINE}  [default: head]"] = None
    price: Annotated[Any, _PRICE, "SECONDS", _prices] = None
    estimates: Annotated[str, "of durations, told to policies: known, limits (what users asked for) or none"] = "known"
    priorities: Annotated[bool, "jobs of a higher priority first, then the order of the policy"] = False
    consolidate: Annotated[bool, _CONSOLIDATE, "--consolidate/--counted"] = False
    per_queue: Annotated[bool, "a cluster of that shape for each virtual cluster of the trace"] = False
    preemptive: Annotated[bool | None, _PREEMPT, "--preempt/--no-preempt"] = None
    preempt_cost: Annotated[float, "lost whenever a stopped job runs again", "SECONDS"] = 0.0
    checkpoint_interval: Annotated[float | None, _CHECKPOINT, "SECONDS"] = None
    degrees: Annotated[Any, "numbers of GPUs on offer to every job, for optimus: 1,2,4,8", "N,N", wholes] = None
    overhead: Annotated[float, "c, if d GPUs take (1 + c (d - 1)) / d times as long as one", "RATIO"] = 0.1
    cpu: Annotated[float | None, "cores of a node  [default: not counted]", "--node-cpu", "CORES"] = None
    memory: Annotated[float | None, "of a node  [default: not counted]", "--node-memory", "BYTES"] = None
    mtbf: Annotated[float | None, "mean time between failures of a node", "SECONDS"] = None
    mttr: Annotated[float | None, "mean time to repair it", "SECONDS"] = None

    def __post_init__(self) -> None:
        if (self.mtbf is None) != (self.mttr is None):
            raise InstanceError("mtbf" if self.mtbf is None else "mttr", "is not given; failures need both")
        for price in self.price or ():
            require_number(price, "price")
        if len(set(self.price or ())) < len(self.price or ()):
            raise InstanceError("price", f"{','.join(f'{x:g}' for x in self.price)!r} has one twice")

    @property
    def disciplines(self) -> list[str]:
        """Return the disciplines, each of which is simulated."""
        return several(self.discipline, "discipline") or ["head"]

    @property
    def rules(self) -> dict[str, Any]:
        """Return the keyword arguments of `simulate_named` that all simulations have."""
        own = ("discipline", "price", "mtbf", "mttr")
        return {name: x for name, x in vars(self).items() if x is not None and name not in own}


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
