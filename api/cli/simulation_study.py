"""What `gangplan simulate` is told, and the rows of it: policies on clusters, in disciplines, at prices of stops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_number
from gangplan.instances.torch_model.load import find_object
from gangplan.simulator.engine import POLICIES
from gangplan.simulator.engine.policy import DECISIONS, EnginePolicy
from gangplan.simulator.engine.simulate import DISCIPLINE, Rules
from gangplan.simulator.engine.told import RESERVES
from gangplan.simulator.metrics.groups import GROUPINGS
from gangplan.simulator.picking import EnginePick

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


ONLINE: dict[str, dict[str, Any]] = {
    "online": {},
    **{name: {"policy": name} for name in ("hybrid", "heuristic", "patient", "evolved", "gnn")},
}
"""Names by which `gangplan.Scheduler` decides, with its arguments; ``online`` is ``hybrid``, its default."""
VARIES = ("cluster", "discipline", "policy", "price")
"""Facts in which rows of a table may differ."""


@dataclass(frozen=True)
class Case:
    """Hold a row: a policy, facts about it (`VARIES` among them), and the keyword arguments of `Setting.run`."""

    policy: Maker
    about: dict[str, Any]
    how: dict[str, Any]


def cases_of(study: Study) -> dict[str, Case]:
    """Return the rows of the table by their labels: every policy on every cluster in every discipline.

    A policy that holds no reservations leaves out the disciplines that do, if it has another; `gangplan.Scheduler` has
    a row for each price of a stop, and is its own discipline.
    """
    policies, engine = study.policies, study.engine
    if (length := study.leases.rounds) is not None:
        return {label: Case(maker, {"policy": label, "round": length}, {}) for label, maker in policies.items()}
    rows, disciplines = list[Case](), engine.disciplines
    for cluster in study.clusters:
        for label, maker in policies.items():
            scheduler = isinstance(maker, str) and maker in ONLINE
            own = [name for name in disciplines if name not in RESERVES or _reserves(maker, engine)] or disciplines
            if len(policies) * len(disciplines) > 1 and own[0] in RESERVES:
                if scheduler:
                    own = ["head"]
                elif not _reserves(maker, engine):
                    goes = f"which {label} does not go with: give one more, like {own[0]},overtake"
                    raise InstanceError("discipline", f"{own[0]!r} holds reservations, {goes}")
            for discipline in own[:1] if scheduler else own:
                how = {"cluster": cluster, "discipline": discipline}
                about: dict[str, Any] = {"policy": label, **how, "consolidate": engine.consolidate}
                if not scheduler:
                    rows.append(Case(maker, about, how))
                    continue
                about |= {"discipline": "its own"} if discipline not in disciplines or len(disciplines) > 1 else {}
                told = {} if engine.estimates == "known" else {"told": False}
                for price in [{"price": x} for x in engine.price or ()] or [{}]:
                    rows.append(Case(made(maker, **told, **price), about | price, how))
    apart = [name for name in VARIES if name != "policy" and len({row.about.get(name) for row in rows}) > 1]
    words = [(row.about["policy"], *(as_word(row.about[name]) for name in apart if name in row.about)) for row in rows]
    return {" ".join(label): row for label, row in zip(words, rows, strict=True)}


def as_word(value: Any) -> str:
    """Return a fact about a row in words."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _reserves(maker: Maker, engine: Engine) -> bool:
    """Return whether a policy goes with disciplines that hold reservations."""
    part = made(maker)()
    stops = engine.preemptive if engine.preemptive is not None else getattr(part, "preemptive", False)
    return not (stops or getattr(part, "shared", False) or hasattr(part, "place") or hasattr(part, "degree"))


def made(maker: Maker, **options: Any) -> Callable[..., Any]:
    """Return what makes a policy; `options` are of `SchedulerPolicy`."""
    if not isinstance(maker, str):
        return maker
    if maker not in ONLINE:
        return POLICIES[maker]
    from gangplan.scheduler.policies.engine_policy import SchedulerPolicy

    return partial(SchedulerPolicy, **ONLINE[maker] | options)


def policies_of(names: Sequence[str], rounds: bool) -> dict[str, Maker]:
    """Return policies by their labels, in order: of files what makes them."""
    found: dict[str, Maker] = {}
    for name in names:
        if ":" in name:
            found[name.rpartition(":")[2] if name not in found else name] = from_file(name, rounds)
        elif rounds or name in POLICIES or name in ONLINE:
            found[name] = name
        else:
            known = ", ".join((*POLICIES, *ONLINE))
            raise InstanceError("policy", f"{name!r} is not one of {known}, nor FILE.py:Class")
    return found


def from_file(text: str, rounds: bool) -> Callable[..., Any]:
    """Return what makes the policy of ``FILE.py:Class``, which is made once to see whether it can decide."""
    name = text.rpartition(":")[2]
    try:
        maker: Callable[..., Any] = find_object(text)
        part = None if rounds else maker()
    except InstanceError as error:
        raise InstanceError("policy", error.problem) from None
    except Exception as error:
        raise InstanceError("policy", f"{name}() fails: {type(error).__name__}: {error}") from error
    if hasattr(part, "act"):
        return lambda: EnginePick(maker())
    if not rounds:
        _check_methods(part, name)
    return maker


def _check_methods(part: Any, name: str) -> None:
    """Raise if a policy has no method that the engine asks, or one that takes other arguments."""
    found = [decision for decision in DECISIONS if hasattr(part, decision)]
    if not found:
        raise InstanceError("policy", f"{name} has none of the methods {', '.join(DECISIONS)}")
    for decision in found:
        wanted = [x for x in inspect.signature(getattr(EnginePolicy, decision)).parameters if x != "self"]
        try:
            inspect.signature(getattr(part, decision)).bind(*wanted)
        except (TypeError, ValueError) as error:
            raise InstanceError("policy", f"{name}.{decision} must take ({', '.join(wanted)}): {error}") from None


def check_effects(engine: Engine, policies: Mapping[str, Any]) -> None:
    """Refuse an option of the engine that changes nothing for any of the policies."""
    parts = [made(maker)() for maker in policies.values()]
    fails, stops = engine.mtbf is not None, any(getattr(x, "preemptive", False) or engine.preemptive for x in parts)
    alone, degrees = set(policies) <= {"online", "hybrid", "heuristic"}, engine.degrees
    own = {
        "preempt": engine.preemptive and all(hasattr(part, "preempt") for part in parts),
        "discipline": alone and "overtake" in engine.disciplines,
        "consolidate": alone and engine.consolidate,
    }
    for name in filter(own.get, own):
        raise InstanceError(name, "is decided by the policy itself")
    if degrees and min(degrees) > 0 and not any(hasattr(part, "degree") for part in parts):
        raise InstanceError("degrees", "are chosen by none of the policies; optimus and online do")
    online = any(maker in ONLINE for maker in policies.values() if isinstance(maker, str))
    for name, given, needs, wanted in (
        ("price", engine.price, online, f"a policy of {', '.join(ONLINE)}"),
        ("overhead", engine.overhead != 0.1, degrees, "--degrees"),
        ("checkpoint_interval", engine.checkpoint_interval is not None, fails, "--mtbf and --mttr"),
        ("preempt_cost", engine.preempt_cost > 0, fails or stops, "a policy that stops jobs, or --mtbf"),
    ):
        if given and not needs:
            raise InstanceError(name, f"changes nothing without {wanted}")
