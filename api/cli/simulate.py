"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.instances.arrays import require_choice, require_number
from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.outlet import write_whole
from gangplan.simulator.engine.policies import POLICIES
from gangplan.simulator.metrics import columns, groups, to_csv, to_parquet
from gangplan.simulator.metrics.groups import GROUPINGS
from gangplan.simulator.trace import Outcome

from ..early import INTERRUPTED
from . import options
from .options import check_output, check_page, check_picture, option
from .output import Bar, emit_either
from .simulation_cases import ONLINE, Case, cases_of, check_effects, policies_of
from .simulation_runs import Setting, check_groups, in_rounds, on_trace, play, sizes_of
from .simulation_tables import as_blocks, as_data

_POLICY = f"{', '.join((*POLICIES, *ONLINE))}; or FILE.py:Class; several: a,b  [default: fifo]"
_TRACE, _ENGINE, _ROUNDS = "The trace", "The cluster and its rules", "In rounds of leases, as Gavel"
_SHOWN = "What is shown"
_DISCIPLINE = "head (the first blocks), overtake (who fits starts), easy or conservative (backfill); several: head,easy"
_CLUSTER = (
    "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first, gangs apart are slower; several: 20x8,24x8; in rounds 8xV100+8xK80"
)
_PRICE = "of a stop, as gangplan.Scheduler expects it; several: 600,1800  [default: it stops no job]"
_ESTIMATES = "of durations, told to policies: known, limits (what users asked for) or none"
_PRIORITIES = "jobs of a higher priority first, then the order of the policy"
_BY = "also a table of what each user, queue or size class got; several: user,size"
_EPOCH = "when the clock of the trace is 0, like 2026-01-05T00:00  [default: the trace's own dates]"
_HTML = "one page with all tables and pictures over calendar time"
_SEEDS = "so many from --seed on, or these: 1,5,9. Means, and intervals of 95%"
_COLUMNS = "of a CSV, what it calls our columns: id=job,gpus=n,submit=t,duration=s"
_LASTS = "seconds, for Pollux' workloads, which do not say: bert=7200,ncf=600"
TRACE = {
    "queue": option(str, "only the jobs of this virtual cluster", panel=_TRACE),
    "like": option(bool, "draw a trace like TRACE for each seed", False, "--like", panel=_TRACE),
    "lasts": option(str, _LASTS, panel=_TRACE, metavar="APP=X,..."),
    "columns": option(str, _COLUMNS, panel=_TRACE, metavar="OURS=NAME,..."),
    "skip_bad": option(bool, "leave bad rows out and count them", False, "--skip-bad", panel=_TRACE),
}
"""Options that say how the trace is read."""
_SECONDS: Any = {"panel": _ENGINE, "metavar": "SECONDS"}
_CONSOLIDATE = "jobs on as few nodes as hold them, or GPUs counted only"
_PREEMPT = "running jobs may be stopped  [default: as the policy would]"
_CHECKPOINT = "after a failure jobs resume from the last checkpoint  [default: from their last start]"
_PER_QUEUE = "a cluster of that shape for each virtual cluster of the trace"
_DEGREES = "numbers of GPUs on offer to every job, for optimus: 1,2,4,8"
_OVERHEAD = "c, if d GPUs take (1 + c (d - 1)) / d times as long as one"
ENGINE = {
    "discipline": option(list[str], f"{_DISCIPLINE}  [default: head]", panel=_ENGINE),
    "price": option(str, _PRICE, panel=_ENGINE, metavar="SECONDS"),
    "estimates": option(str, _ESTIMATES, "known", panel=_ENGINE),
    "priorities": option(bool, _PRIORITIES, False, "--priorities", panel=_ENGINE),
    "consolidate": option(bool, _CONSOLIDATE, False, "--consolidate/--counted", panel=_ENGINE),
    "per_queue": option(bool, _PER_QUEUE, False, "--per-queue", panel=_ENGINE),
    "preemptive": option(bool, _PREEMPT, None, "--preempt/--no-preempt", panel=_ENGINE),
    "preempt_cost": option(float, "lost whenever a stopped job runs again", 0.0, **_SECONDS),
    "checkpoint_interval": option(float, _CHECKPOINT, **_SECONDS),
    "degrees": option(str, _DEGREES, panel=_ENGINE, metavar="N,N", parser=options.wholes),
    "overhead": option(float, _OVERHEAD, 0.1, panel=_ENGINE, metavar="RATIO"),
    "cpu": option(float, "cores of a node  [default: not counted]", None, "--node-cpu", panel=_ENGINE, metavar="CORES"),
    "memory": option(float, "of a node  [default: not counted]", None, "--node-memory", panel=_ENGINE, metavar="BYTES"),
    "mtbf": option(float, "mean time between failures of a node", **_SECONDS),
    "mttr": option(float, "mean time to repair it", **_SECONDS),
}
"""Arguments of `simulate_named`, and how nodes fail."""
ROUNDS = {
    "rounds": option(float, "how long a lease lasts", panel=_ROUNDS, metavar="SECONDS"),
    "throughputs": option(str, "Gavel's table of steps a second, for Gavel's traces", panel=_ROUNDS, metavar="FILE"),
    "speeds": option(str, "of the types, for other traces: v100=1,k80=0.3", panel=_ROUNDS, metavar="TYPE=X,..."),
}


SHOWS = {
    "by": option(list[str], _BY, panel=_SHOWN, metavar="user|queue|size"),
    "gpu_hour_price": option(float, "in any currency: what was held and what was idle cost", panel=_SHOWN, metavar="X"),
    "epoch": option(str, _EPOCH, panel=_SHOWN, metavar="TIME"),
    "html": option(str, _HTML, panel=_SHOWN, metavar="FILE"),
}
"""Options that say what is shown."""


@options.with_tables(reading=TRACE, engine=ENGINE, leases=ROUNDS, shows=SHOWS)
def simulate(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="CSV with job_id, num_gpu, submit_time, duration; or as published")
    ],
    cluster: Annotated[list[str], typer.Option(help=_CLUSTER, metavar="NxM")],
    reading: dict[str, Any],
    engine: dict[str, Any],
    leases: dict[str, Any],
    shows: dict[str, Any],
    policy: Annotated[list[str] | None, typer.Option(help=_POLICY)] = None,
    seed: options.Seed = 0,
    seeds: Annotated[str | None, typer.Option(help=_SEEDS, metavar="N|N,N")] = None,
    out: Annotated[str | None, typer.Option(help="write a row for each job, .csv or .parquet", metavar="FILE")] = None,
    plot: options.Picture = None,
    panel: options.Panel = None,
    as_json: options.AsJson = False,
) -> int:
    """Run the jobs of TRACE on a cluster and show when they were done.

    With Ctrl-C it shows what has been simulated so far.
    """
    failures = _failures(engine["mtbf"], engine["mttr"])
    check_files(trace, out, plot, panel, shows["html"])
    length, epoch = leases["rounds"], _epoch(shows["epoch"], plot is not None or shows["html"] is not None)
    require_number(shows["gpu_hour_price"], "gpu_hour_price", optional=True)
    policies = policies_of(_several(policy, "policy") or ["fifo"], length is not None)
    clusters, by = _several(cluster, "cluster"), _several(shows["by"], "by")
    for name in by:
        require_choice(name, "by", GROUPINGS)
    if length is not None:
        known = {**ENGINE, "like": TRACE["like"]}
        alien = [name for name, value in {**engine, "like": reading["like"]}.items() if value != known[name].default]
        if alien:
            raise InstanceError("rounds", f"of leases know no {', '.join(alien)}")
        if len(clusters) > 1:
            raise InstanceError("cluster", "is one in rounds")
        setting = in_rounds(trace, clusters[0], leases, {n: x for n, x in reading.items() if n != "like"})
        cases = {label: Case(maker, {"policy": label, "round": length}, {}) for label, maker in policies.items()}
    else:
        for name in ("speeds", "throughputs"):
            if leases[name] is not None:
                raise InstanceError(name, "mean something in --rounds only")
        disciplines = _several(engine["discipline"], "discipline") or ["head"]
        prices = _prices(engine["price"], policies)
        check_effects(engine, policies, disciplines, failures is not None)
        own = ("mtbf", "mttr", "discipline", "price")
        given = {name: x for name, x in engine.items() if x is not None and name not in own}
        setting = on_trace(trace, sizes_of(clusters), given, failures, disciplines, **reading)
        cases = cases_of(policies, engine, clusters, disciplines, prices)
    chosen, many = _seeds(seeds, seed, setting), seeds is not None
    check_groups(by, setting, many)
    with Bar("simulating", hidden=as_json) as bar:
        found = play(setting, cases, chosen, bar, shows["gpu_hour_price"])
    for label, outcome in found.outcomes.items():
        found.about[label] |= setting.about
        found.groups[label] = {name: groups(outcome, name, shows["gpu_hour_price"]) for name in by}
    dates = setting.epoch if epoch is None else epoch
    pages = {}
    if shows["html"] is not None:
        from .simulation_report import report

        pages[shows["html"]] = report(found, setting, Path(trace).name, dates, many)
    write_files(found.outcomes, trace, out, plot, panel, epoch=dates, more=pages)
    emit_either(as_json, as_data(found, many), *as_blocks(found, setting, many))
    return INTERRUPTED if found.interrupted else 0


def _several(given: Sequence[str] | None, field: str) -> list[str]:
    """Return the words that an option was given, once or more often, joined by commas."""
    words = [word.strip() for one in given or () for word in one.split(",")]
    for word in words:
        if words.count(word) > 1:
            raise InstanceError(field, f"{word!r} is given {words.count(word)} times")
    return words


def _prices(text: str | None, policies: Mapping[str, Any]) -> list[float]:
    if text is None:
        return []
    if not any(maker in ONLINE for maker in policies.values() if isinstance(maker, str)):
        raise InstanceError("price", f"changes nothing without a policy of {', '.join(ONLINE)}")
    prices: list[float] = [options.number(word) for word in text.split(",")]
    for price in prices:
        require_number(price, "price")
    if len(set(prices)) < len(prices):
        raise InstanceError("price", f"{text!r} has one twice")
    return prices


def _epoch(text: str | None, drawn: bool) -> float | None:
    """Return the seconds from 1970 to what the clock on the wall shows, in whatever zone."""
    if text is None:
        return None
    if not drawn:
        raise InstanceError("epoch", "is of pictures: give --plot or --html")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise InstanceError("epoch", f"{text!r} is no time like 2026-01-05T00:00") from None


def _seeds(text: str | None, first: int, setting: Setting) -> list[int]:
    if not setting.random and (text is not None or first):
        one, words = ("seed", "changes") if text is None else ("seeds", "change")
        raise InstanceError(one, f"{words} nothing here: give --mtbf and --mttr, --rounds, or --like")
    if text is None:
        return [first]
    if "," in text and first:
        raise InstanceError("seed", "changes nothing beside a list of --seeds")
    found = options.wholes(text)
    chosen = list(found) if "," in text else list(range(first, first + found[0]))
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen) or len(chosen) > 10_000:
        raise InstanceError("seeds", f"{text!r} is not a number of seeds from 1 to 10000, nor a list of several")
    return chosen


def _failures(mtbf: float | None, mttr: float | None) -> tuple[float, float] | None:
    if mtbf is not None and mttr is not None:
        return mtbf, mttr
    if mtbf is not None or mttr is not None:
        raise InstanceError("mttr" if mttr is None else "mtbf", "is not given; failures need both")
    return None


ENDINGS = {".csv": to_csv, ".parquet": to_parquet}


def check_files(
    trace: str, out: str | None, plot: str | None, panel: str | None = None, html: str | None = None
) -> None:
    """Refuse, before any work is done, files that overwrite the trace, or whose ending or package is not there."""
    check_page(html, trace)
    if html is not None and html in (out, plot):
        raise InstanceError("html", "is the file of another option too", html)
    if out is not None:
        check_output(out, trace)
        suffix = Path(out).suffix.lower()
        if suffix not in ENDINGS:
            raise InstanceError("out", f"{suffix!r} is not one of {', '.join(ENDINGS)}", out)
        if suffix == ".parquet" and find_spec("pyarrow") is None:
            raise InstanceError("out", f"needs pyarrow; {extra('tables')}; .csv needs nothing", out)
    if panel is not None and plot is None:
        raise InstanceError("panel", "is of a picture: give --plot")
    check_picture(plot, panel, Outcome, trace)


def write_files(
    outcomes: Mapping[str, Outcome],
    trace: str,
    out: str | None,
    plot: str | None,
    panel: str | None = None,
    *,
    epoch: float | None = None,
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write all files, those of `more` by their path, or none."""
    files: dict[str, bytes] = dict(more or {})
    if out is not None:
        files[out] = ENDINGS[Path(out).suffix.lower()](columns(outcomes))
    if plot is not None:
        from ..plot import render

        files[plot] = render(plot, outcomes, None, name=Path(trace).name, panel=panel, epoch=epoch)
    write_whole(files)
