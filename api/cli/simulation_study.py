"""What `gangplan simulate` is told: a `Study`, whose fields are its options; and the rows that it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Annotated, Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_number
from gangplan.instances.errors import did_you_mean, extra
from gangplan.instances.torch_model.load import find_object
from gangplan.simulator.engine import POLICIES
from gangplan.simulator.engine.policy import DECISIONS, EnginePolicy
from gangplan.simulator.engine.simulate import DISCIPLINE, Rules
from gangplan.simulator.engine.told import RESERVES
from gangplan.simulator.metrics import to_csv, to_parquet
from gangplan.simulator.metrics.groups import GROUPINGS
from gangplan.simulator.picking import EnginePick

from .options import READ, SEVERAL, Output, Panel, Picture, Section, Seed, refuse, wholes

ONLINE: dict[str, dict[str, Any]] = {"online": {}}
ONLINE |= {name: {"policy": name} for name in ("hybrid", "heuristic", "patient", "evolved", "gnn")}
"""Names by which `gangplan.Scheduler` decides, with its arguments; ``online`` is ``hybrid``, its default."""
ENDINGS = {".csv": to_csv, ".parquet": to_parquet}
"""What writes a row for each job, by the ending of the file."""


def _has_package(path: str) -> None:
    if path.lower().endswith(".parquet") and find_spec("pyarrow") is None:
        raise InstanceError("out", f"needs pyarrow; {extra('tables')}; .csv needs nothing", path)


_CLUSTER = (
    "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first, gangs apart are slower; several: 20x8,24x8; in rounds 8xV100+8xK80"
)
_POLICY = f"{', '.join((*POLICIES, *ONLINE))}; or FILE.py:Class; several: a,b  [default: fifo]"
_SEEDS = "so many from --seed on, or these: 1,5,9. Means, and intervals of 95%"
_LASTS = "seconds, for Pollux' workloads, which do not say: bert=7200,ncf=600"
_COLUMNS = "of a CSV, what it calls our columns: id=job,gpus=n,submit=t,duration=s"
_PRICE = "of a stop, as gangplan.Scheduler expects it; several: 600,1800  [default: it stops no job]"
_BY = "also a table of what each user, queue or size class got; several: user,size"
_EPOCH = "when the clock of the trace is 0, like 2026-01-05T00:00  [default: the trace's own dates]"
_HTML = "one page with all tables and pictures over calendar time"
_MAIN, _TRACE, _LEASES, _SHOWN = map(Section, ("", "The trace", "In rounds of leases, as Gavel", "What is shown"))


@dataclass(frozen=True, kw_only=True)
class Study(Rules):
    """Hold what is simulated, and what of it is shown; some options take several values, each a row."""

    section = "The cluster and its rules"
    trace: Annotated[str, "CSV with job_id, num_gpu, submit_time, duration; or as published", "TRACE", READ]
    cluster: Annotated[list[str], _CLUSTER, "NxM", "--cluster", SEVERAL, _MAIN]
    policy: Annotated[list[str] | None, _POLICY, SEVERAL, _MAIN] = None
    seed: Annotated[Seed, _MAIN] = 0
    seeds: Annotated[str | None, _SEEDS, "N|N,N", _MAIN] = None
    out: Annotated[
        str | None, "write a row for each job, .csv or .parquet", "FILE", Output(*ENDINGS, check=_has_package), _MAIN
    ] = None
    plot: Annotated[Picture, _MAIN] = None
    panel: Annotated[Panel, _MAIN] = None
    queue: Annotated[str | None, "only the jobs of this virtual cluster", _TRACE] = None
    like: Annotated[bool, "draw a trace like TRACE for each seed", _TRACE] = False
    lasts: Annotated[str | None, _LASTS, "APP=X,...", _TRACE] = None
    columns: Annotated[str | None, _COLUMNS, "OURS=NAME,...", _TRACE] = None
    skip_bad: Annotated[bool, "leave bad rows out and count them", _TRACE] = False
    discipline: Annotated[list[str] | None, f"{DISCIPLINE}; several: head,easy  [default: head]", SEVERAL] = None
    price: Annotated[Sequence[float] | None, _PRICE, "SECONDS"] = None
    mtbf: Annotated[float | None, "mean time between failures of a node", "SECONDS"] = None
    mttr: Annotated[float | None, "mean time to repair it", "SECONDS"] = None
    rounds: Annotated[float | None, "how long a lease lasts", "SECONDS", _LEASES] = None
    throughputs: Annotated[str | None, "Gavel's table of steps a second, for Gavel's traces", "FILE", _LEASES] = None
    speeds: Annotated[str | None, "of the types, for other traces: v100=1,k80=0.3", "TYPE=X,...", _LEASES] = None
    by: Annotated[list[str] | None, _BY, "user|queue|size", SEVERAL, _SHOWN] = None
    gpu_hour_price: Annotated[float | None, "in any currency: what was held and what was idle cost", "X", _SHOWN] = None
    epoch: Annotated[str | None, _EPOCH, "TIME", _SHOWN] = None
    html: Annotated[str | None, _HTML, "FILE", Output(".html"), _SHOWN] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        prices, missing = self.price or (), "mtbf" if self.mtbf is None else "mttr"
        for price in prices:
            require_number(price, "price")
        require_number(self.gpu_hour_price, "gpu_hour_price", optional=True)
        for name in self.by or ():
            require_choice(name, "by", GROUPINGS)
        refuse(
            (missing, (self.mtbf is None) != (self.mttr is None), "is not given; failures need both"),
            ("price", len(set(prices)) < len(prices), f"{','.join(f'{x:g}' for x in prices)!r} has one twice"),
            ("panel", self.panel is not None and self.plot is None, "is of a picture: give --plot"),
            ("epoch", self.zero is not None and not (self.plot or self.html), "is of pictures: give --plot or --html"),
            ("by", self.by and self.many, "is of one seed: leave --seeds out"),
        )

    @property
    def many(self) -> bool:
        """Return whether means over seeds are shown."""
        return self.seeds is not None

    @property
    def disciplines(self) -> list[str]:
        """Return the disciplines."""
        return self.discipline or ["head"]

    @property
    def zero(self) -> float | None:
        """Return the seconds from 1970 to what the clock on the wall shows at time 0, in whatever zone."""
        try:
            return None if self.epoch is None else datetime.fromisoformat(self.epoch).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InstanceError("epoch", f"{self.epoch!r} is no time like 2026-01-05T00:00") from None

    @cached_property
    def policies(self) -> dict[str, Maker]:
        """Return what makes each policy by its label: a name, or of a file the class."""
        found: dict[str, Maker] = {}
        for name in self.policy or ["fifo"]:
            if ":" in name:
                label = name.rpartition(":")[2] if name not in found else name
                found[label] = _from_file(name, self.rounds is not None)
            elif self.rounds is not None or name in POLICIES or name in ONLINE:
                found[name] = name
            else:
                known = ", ".join((*POLICIES, *ONLINE))
                words = f"{name!r} is not one of {known}, nor FILE.py:Class"
                raise InstanceError("policy", words + did_you_mean(name, (*POLICIES, *ONLINE)))
        return found

    def drawn(self, random: bool) -> list[int]:
        """Return the seeds; only of what is `random` there may be other than one."""
        text, first, words = self.seeds, self.seed, "nothing here: give --mtbf and --mttr, --rounds, or --like"
        listed = text is not None and "," in text
        refuse(
            ("seeds", text is not None and not random, f"change {words}"),
            ("seed", first and not random, f"changes {words}"),
            ("seed", first and listed, "changes nothing beside a list of --seeds"),
        )
        found = (1,) if text is None else wholes(text)
        chosen = list(found) if listed else list(range(first, first + found[0]))
        if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen) or len(chosen) > 10_000:
            raise InstanceError("seeds", f"{text!r} is not a number of seeds from 1 to 10000, nor a list of several")
        return chosen


Maker = str | Callable[..., Any]
"""The name of a policy, or what makes one."""
VARIES = ("cluster", "discipline", "policy", "price")
"""Facts in which rows of a table may differ."""


@dataclass(frozen=True)
class StudyRow:
    """Hold a row: a policy, facts about it (`VARIES` among them), and the keyword arguments of `Setting.run`."""

    policy: Maker
    about: dict[str, Any]
    how: dict[str, Any]


def cases_of(study: Study) -> dict[str, StudyRow]:
    """Return the rows of the table by their labels: every policy on every cluster in every discipline.

    A policy that holds no reservations leaves out the disciplines that do, if it has another; `gangplan.Scheduler` has
    a row for each price of a stop, and is its own discipline.
    """
    policies, disciplines = study.policies, study.disciplines
    if study.rounds is not None:
        return {name: StudyRow(maker, {"policy": name, "round": study.rounds}, {}) for name, maker in policies.items()}
    rows = list[StudyRow]()
    for cluster in study.cluster:
        for label, maker in policies.items():
            scheduler = isinstance(maker, str) and maker in ONLINE
            own = [name for name in disciplines if name not in RESERVES or _reserves(maker, study)] or disciplines
            if len(policies) * len(disciplines) > 1 and own[0] in RESERVES:
                if scheduler:
                    own = ["head"]
                elif not _reserves(maker, study):
                    goes = f"which {label} does not go with: give one more, like {own[0]},overtake"
                    raise InstanceError("discipline", f"{own[0]!r} holds reservations, {goes}")
            for discipline in own[:1] if scheduler else own:
                how = {"cluster": cluster, "discipline": discipline}
                about: dict[str, Any] = {"policy": label, **how, "consolidate": study.consolidate}
                if not scheduler:
                    rows.append(StudyRow(maker, about, how))
                    continue
                about |= {"discipline": "its own"} if discipline not in disciplines or len(disciplines) > 1 else {}
                told = {} if study.estimates == "known" else {"told": False}
                for price in [{"price": x} for x in study.price or ()] or [{}]:
                    rows.append(StudyRow(made(maker, **told, **price), about | price, how))
    apart = [name for name in VARIES if name != "policy" and len({row.about.get(name) for row in rows}) > 1]
    words = [(row.about["policy"], *(as_word(row.about[name]) for name in apart if name in row.about)) for row in rows]
    return {" ".join(label): row for label, row in zip(words, rows, strict=True)}


def as_word(value: Any) -> str:
    """Return a fact about a row in words."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _reserves(maker: Maker, rules: Rules) -> bool:
    """Return whether a policy goes with disciplines that hold reservations."""
    part = made(maker)()
    stops = rules.preemptive if rules.preemptive is not None else getattr(part, "preemptive", False)
    return not (stops or getattr(part, "shared", False) or hasattr(part, "place") or hasattr(part, "degree"))


def made(maker: Maker, **options: Any) -> Callable[..., Any]:
    """Return what makes a policy; `options` are of `SchedulerPolicy`."""
    if not isinstance(maker, str):
        return maker
    if maker not in ONLINE:
        return POLICIES[maker]
    from gangplan.scheduler.policies.engine_policy import SchedulerPolicy

    return partial(SchedulerPolicy, **ONLINE[maker] | options)


def _from_file(text: str, rounds: bool) -> Callable[..., Any]:
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
    found = [decision for decision in DECISIONS if hasattr(part, decision)]
    refuse(("policy", not (rounds or found), f"{name} has none of the methods {', '.join(DECISIONS)}"))
    for decision in found:
        wanted = [x for x in inspect.signature(getattr(EnginePolicy, decision)).parameters if x != "self"]
        try:
            inspect.signature(getattr(part, decision)).bind(*wanted)
        except (TypeError, ValueError) as error:
            raise InstanceError("policy", f"{name}.{decision} must take ({', '.join(wanted)}): {error}") from None
    return maker


def check_effects(study: Study, policies: Mapping[str, Maker]) -> None:
    """Refuse an option of the engine that changes nothing for any of the policies."""
    parts, degrees = [made(maker)() for maker in policies.values()], study.degrees
    alone = set(policies) <= {"online", "hybrid", "heuristic"}
    online = any(x in ONLINE for x in policies.values() if isinstance(x, str))
    fails, stops = study.mtbf is not None, any(getattr(x, "preemptive", False) or study.preemptive for x in parts)
    gangs, chosen = degrees and min(degrees) > 0, any(hasattr(x, "degree") for x in parts)
    itself, without = "is decided by the policy itself", "changes nothing without"
    refuse(
        ("preempt", study.preemptive and all(hasattr(x, "preempt") for x in parts), itself),
        ("discipline", alone and "overtake" in study.disciplines, itself),
        ("consolidate", alone and study.consolidate, itself),
        ("degrees", gangs and not chosen, "are chosen by none of the policies; optimus and online do"),
        ("price", study.price and not online, f"{without} a policy of {', '.join(ONLINE)}"),
        ("overhead", study.overhead != 0.1 and not degrees, f"{without} --degrees"),
        ("checkpoint_interval", study.checkpoint_interval is not None and not fails, f"{without} --mtbf and --mttr"),
        ("preempt_cost", study.preempt_cost and not (fails or stops), f"{without} a policy that stops jobs, or --mtbf"),
    )
