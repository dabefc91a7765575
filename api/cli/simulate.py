"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.intake import cluster_sizes
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import scale
from gangplan.simulator.engine.policies import POLICIES
from gangplan.simulator.metrics import columns, to_csv, to_parquet
from gangplan.simulator.trace import Outcome

from ..early import INTERRUPTED
from ..units import plus_minus
from . import options
from .options import check_output, check_picture, option
from .output import Bar, emit_either, facts, table
from .simulation_runs import ONLINE, Found, Setting, check_effects, in_rounds, on_trace, play, policies_of

_POLICY = f"{', '.join((*POLICIES, *ONLINE))}; or FILE.py:Class; may be repeated  [default: fifo]"
_TRACE, _ENGINE, _ROUNDS = "The trace", "The cluster and its rules", "In rounds of leases, as Gavel"
_DISCIPLINE = "head (the first blocks), overtake (who fits starts), easy or conservative (backfill)"
_CLUSTER = "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first, gangs apart are slower; in rounds 8xV100+8xK80"
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
"""How the trace is read."""
_SECONDS: Any = {"panel": _ENGINE, "metavar": "SECONDS"}
_CONSOLIDATE = "jobs on as few nodes as hold them, or GPUs counted only"
_PREEMPT = "running jobs may be stopped  [default: as the policy would]"
_CHECKPOINT = "after a failure jobs resume from the last checkpoint  [default: from their last start]"
_PER_QUEUE = "a cluster of that shape for each virtual cluster of the trace"
_DEGREES = "numbers of GPUs on offer to every job, for optimus: 1,2,4,8"
_OVERHEAD = "c, if d GPUs take (1 + c (d - 1)) / d times as long as one"
ENGINE = {
    "discipline": option(str, _DISCIPLINE, "head", panel=_ENGINE),
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


@options.with_tables(reading=TRACE, engine=ENGINE, leases=ROUNDS)
def simulate(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="CSV with job_id, num_gpu, submit_time, duration; or as published")
    ],
    cluster: Annotated[str, typer.Option(help=_CLUSTER, metavar="NxM")],
    reading: dict[str, Any],
    engine: dict[str, Any],
    leases: dict[str, Any],
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
    check_files(trace, out, plot, panel)
    length = leases["rounds"]
    policies = policies_of(policy or ["fifo"], length is not None)
    if length is not None:
        known = {**ENGINE, "like": TRACE["like"]}
        alien = [name for name, value in {**engine, "like": reading["like"]}.items() if value != known[name].default]
        if alien:
            raise InstanceError("rounds", f"of leases know no {', '.join(alien)}")
        setting = in_rounds(trace, cluster, leases, {n: x for n, x in reading.items() if n != "like"})
        asked = {"round": length}
    else:
        for name in ("speeds", "throughputs"):
            if leases[name] is not None:
                raise InstanceError(name, "mean something in --rounds only")
        check_effects(engine, policies, failures is not None)
        given = {name: x for name, x in engine.items() if x is not None and name not in ("mtbf", "mttr")}
        near = cluster.count("x") == 2
        form = ("racks x nodes x GPUs", "4x8x8") if near else ("nodes x GPUs", "20x8")
        setting = on_trace(trace, cluster_sizes(cluster, *form, 10**7), given, failures, **reading)
        asked = {name: engine[name] for name in ("discipline", "consolidate")}
    chosen = _seeds(seeds, seed, setting)
    with Bar("simulating", hidden=as_json) as bar:
        found = play(setting, policies, chosen, bar)
    if out is not None or plot is not None:
        write_files(found.outcomes, trace, out, plot, panel)
    many = seeds is not None
    emit_either(as_json, _data(found, asked | setting.about, many), *_blocks(found, setting, many))
    return INTERRUPTED if found.interrupted else 0


def _data(found: Found, asked: dict[str, Any], many: bool) -> list[dict[str, Any]]:
    """Return an object for each policy: its figures, or with seeds their means, margins and values."""
    if not many:
        return [{"policy": label, **asked, **runs[0]} for label, runs in found.figures.items()]
    rows = []
    for label, runs in found.figures.items():
        known: dict[str, Any] = {}
        for name in runs[0]:
            values = [run[name] for run in runs]
            if None in values:
                continue
            mean, margin = _interval(values)
            apart = [x - y[name] for x, y in zip(values, next(iter(found.figures.values())), strict=True)]
            difference, width = _interval(apart)
            known[name] = {"mean": mean, "margin": margin, "difference": difference, "difference_margin": width}
            known[name]["values"] = values
        rows.append({"policy": label, **asked, "seeds": found.seeds, "figures": known})
    return rows


def _blocks(found: Found, setting: Setting, many: bool) -> list[Any]:
    """Return what people are shown, within 80 columns."""
    head = list(setting.facts)
    if many:
        head.append(("seeds", ", ".join(map(str, found.seeds))))
    if found.interrupted:
        head.append(("interrupted", "what was done until then"))
    blocks: list[Any] = [facts(head)]
    known = next(iter(found.figures.values()))[0]
    for shown in _WITH_SEEDS if many else _ALONE:
        columns = [_Column(name, words, found) for name, words in shown.items() if known.get(name) is not None]
        rows = [(label, *(column.cell(runs) for column in columns)) for label, runs in found.figures.items()]
        blocks.append(table(("policy", *(column.head for column in columns)), rows))
    if many and len(found.figures) > 1:
        first, *others = found.figures
        columns = [_Column(name, words, found) for name, words in _WITH_SEEDS[0].items()]
        rows = [(x, *(column.cell(found.figures[x], found.figures[first]) for column in columns)) for x in others]
        blocks.append(table((f"against {first}", *(column.head for column in columns)), rows))
    return blocks


class _Column:
    """A figure in a table: times of all policies in one unit, shares in percent."""

    def __init__(self, name: str, words: str, found: Found) -> None:
        self.name, self.factor, unit = name, 1.0, ""
        if name in _TIMES:
            self.factor, unit = scale(max(fmean(run[name] for run in runs) for runs in found.figures.values()), "s")
        elif name in _SHARES:
            self.factor, unit = 0.01, "%"
        self.head = f"{words}, {unit}" if unit else words

    def cell(self, runs: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]] | None = None) -> str:
        """Return the mean of a policy, or of its differences from another seed by seed, and the margin of 95%."""
        if any(run[self.name] is None for run in runs):
            return ""
        less = [0.0] * len(runs) if others is None else [run[self.name] for run in others]
        mean, margin = _interval([(run[self.name] - x) / self.factor for run, x in zip(runs, less, strict=True)])
        return f"{'+' if others is not None and mean > 0 else ''}{plus_minus(mean, margin)}"


_ALONE: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "median_jct": "median", "p95_jct": "p95", "p99_jct": "p99", "mean_wait": "mean wait"},
    {"makespan": "makespan", "utilisation": "busy", "mean_slowdown": "slowdown"}
    | {"interruptions": "stops/job", "worst_rho": "worst rho", "regret": "regret"},
)
_WITH_SEEDS: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "p99_jct": "p99 JCT", "makespan": "makespan"},
    {"utilisation": "busy", "mean_slowdown": "slowdown", "interruptions": "stops/job", "regret": "regret"},
)
"""Tables of figures, and what people are told they are."""
_TIMES = ("mean_jct", "median_jct", "p95_jct", "p99_jct", "mean_wait", "makespan")
_SHARES = ("utilisation", "regret")


def _interval(values: Sequence[float]) -> tuple[float, float | None]:
    import numpy as np

    from gangplan.simulator.metrics import interval

    return interval(np.array(values, dtype=float))


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
    if mtbf is None and mttr is None:
        return None
    if mtbf is None or mttr is None:
        raise InstanceError("mttr" if mttr is None else "mtbf", "is not given; failures need both")
    return mtbf, mttr


ENDINGS = {".csv": to_csv, ".parquet": to_parquet}


def check_files(trace: str, out: str | None, plot: str | None, panel: str | None = None) -> None:
    """Refuse, before any work is done, files that cannot be written, whose ending or package is not there.

    Args:
        trace: the input, not to be overwritten.
        out: for rows of jobs, .csv or .parquet.
        plot: for a picture, .png, .svg or .html.
        panel: of the picture, only this one.
    """
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
    outcomes: Mapping[str, Outcome], trace: str, out: str | None, plot: str | None, panel: str | None = None
) -> None:
    """Write the files that were asked for, whole or not at all."""
    files: dict[str, bytes] = {}
    if out is not None:
        files[out] = ENDINGS[Path(out).suffix.lower()](columns(outcomes))
    if plot is not None:
        from ..plot import render

        files[plot] = render(plot, outcomes, None, name=Path(trace).name, panel=panel)
    write_whole(files)
