"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated, Any

import typer

from gangplan.instances import InstanceError

from ..early import INTERRUPTED
from ..units import scale, short
from . import options
from .numbers import number, whole, wholes
from .output import emit_blocks, emit_json, facts, table
from .progress import Bar
from .simulation_files import check_files, write_files
from .simulation_runs import Found, Setting, in_rounds, on_trace, play, policies_of

_PLAIN: dict[str, Any] = {
    "discipline": "head",
    "consolidate": False,
    "preempt_cost": 0.0,
    "degrees": (),
    "overhead": 0.1,
    "per_queue": False,
}
"""What is said of nothing: the options that a simulation in rounds does not have; all others are None."""


def simulate(
    trace: Annotated[
        str,
        typer.Argument(
            metavar="TRACE",
            help="CSV with job_id, num_gpu, submit_time, duration; or as published",
        ),
    ],
    cluster: Annotated[
        str, typer.Option(help="20x8 is 20 nodes of 8 GPUs; in rounds, GPUs by type: 8xV100+8xK80", metavar="NxM")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="fifo, sjf, ljf, smallest, least_work, srtf, tiresias, drf, tetris, gandiva, optimus, online; or "
            "FILE.py:Class; may be repeated  [default: fifo]",
            metavar="NAME",
        ),
    ] = None,
    discipline: Annotated[
        str,
        typer.Option(
            help="head (the first blocks), overtake (who fits starts), easy or conservative (backfill)", metavar="NAME"
        ),
    ] = "head",
    consolidate: Annotated[
        bool, typer.Option("--consolidate/--counted", help="jobs on as few nodes as hold them, or GPUs counted only")
    ] = False,
    queue: Annotated[str | None, typer.Option(help="only the jobs of this virtual cluster", metavar="NAME")] = None,
    per_queue: Annotated[
        bool, typer.Option("--per-queue", help="a cluster of that shape for each virtual cluster of the trace")
    ] = False,
    preempt: Annotated[
        bool | None,
        typer.Option("--preempt/--no-preempt", help="running jobs may be stopped  [default: as the policy would]"),
    ] = None,
    preempt_cost: Annotated[
        float, typer.Option(help="lost whenever a stopped job runs again", metavar="SECONDS", parser=number)
    ] = 0.0,
    checkpoint_interval: Annotated[
        float | None,
        typer.Option(
            help="after a failure jobs resume from the last checkpoint  [default: from their last start]",
            metavar="SECONDS",
            parser=number,
        ),
    ] = None,
    mtbf: Annotated[
        float | None, typer.Option(help="mean time between failures of a node", metavar="SECONDS", parser=number)
    ] = None,
    mttr: Annotated[float | None, typer.Option(help="mean time to repair it", metavar="SECONDS", parser=number)] = None,
    seed: Annotated[int, typer.Option(help="of all that is random", metavar="N", parser=whole)] = 0,
    seeds: Annotated[
        str | None,
        typer.Option(help="so many from --seed on, or these: 1,5,9. Means, and intervals of 95%", metavar="N|N,N"),
    ] = None,
    like: Annotated[bool, typer.Option("--like", help="draw a trace like TRACE for each seed")] = False,
    degrees: Annotated[
        str | None,
        typer.Option(help="numbers of GPUs on offer to every job, for optimus: 1,2,4,8", metavar="N,N", parser=wholes),
    ] = None,
    overhead: Annotated[
        float,
        typer.Option(help="c, if d GPUs take (1 + c (d - 1)) / d times as long as one", metavar="RATIO", parser=number),
    ] = 0.1,
    node_cpu: Annotated[
        float | None,
        typer.Option(help="cores of a node  [default: they are not counted]", metavar="CORES", parser=number),
    ] = None,
    node_memory: Annotated[
        float | None, typer.Option(help="of a node  [default: it is not counted]", metavar="BYTES", parser=number)
    ] = None,
    lasts: Annotated[
        str | None,
        typer.Option(help="seconds, for Pollux' workloads, which do not say: bert=7200,ncf=600", metavar="APP=X,..."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="leave bad rows out and count them")] = False,
    rounds: Annotated[
        float | None,
        typer.Option(help="leases of so long, as Gavel: see Rounds of leases", metavar="SECONDS", parser=number),
    ] = None,
    throughputs: Annotated[
        str | None, typer.Option(help="in rounds: Gavel's table of steps a second, for Gavel's traces", metavar="FILE")
    ] = None,
    speeds: Annotated[
        str | None, typer.Option(help="in rounds: of the types, for other traces: v100=1,k80=0.3", metavar="TYPE=X,...")
    ] = None,
    out: Annotated[str | None, typer.Option(help="write a row for each job, .csv or .parquet", metavar="FILE")] = None,
    plot: options.Picture = None,
    panel: options.Panel = None,
    as_json: options.AsJson = False,
) -> int:
    """Run the jobs of TRACE on a cluster and show when they were done.

    With Ctrl-C it shows what has been simulated so far.
    """
    engine = {
        "discipline": discipline,
        "consolidate": consolidate,
        "preemptive": preempt,
        "preempt_cost": preempt_cost,
        "checkpoint_interval": checkpoint_interval,
        "degrees": degrees or (),
        "overhead": overhead,
        "cpu": node_cpu,
        "memory": node_memory,
        "per_queue": per_queue,
    }
    failures = _failures(mtbf, mttr)
    check_files(trace, out, plot, panel)
    if rounds is not None:
        alien = [
            name for name, value in {**engine, "mtbf": mtbf, "like": like or None}.items() if value != _PLAIN.get(name)
        ]
        if alien:
            raise InstanceError("rounds", f"of leases know no {', '.join(alien)}")
        setting = in_rounds(
            trace, cluster, rounds, throughputs=throughputs, speeds=speeds, queue=queue, skip_bad=skip_bad
        )
    elif throughputs is not None or speeds is not None:
        raise InstanceError("throughputs" if speeds is None else "speeds", "mean something in --rounds only")
    else:
        setting = on_trace(
            trace, *_shape(cluster), engine, failures, like=like, lasts=lasts, queue=queue, skip_bad=skip_bad
        )
    chosen = _seeds(seeds, seed, setting)
    policies = policies_of(policy or ["fifo"], rounds is not None)
    with Bar("simulating", hidden=as_json) as bar:
        found = play(setting, policies, chosen, bar)
    if out is not None or plot is not None:
        write_files(found.outcomes, trace, out, plot, panel)
    asked = {"round": rounds} if rounds is not None else {"discipline": discipline, "consolidate": consolidate}
    if as_json:
        emit_json(_data(found, asked | setting.about, seeds is not None))
    else:
        emit_blocks(*_blocks(found, setting, seeds is not None))
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
        rows = [
            (label, *(column.apart(found.figures[label], found.figures[first]) for column in columns))
            for label in others
        ]
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

    def cell(self, runs: Sequence[dict[str, Any]]) -> str:
        """Return the mean of a policy, of several seeds with the margin of 95%."""
        values = [run[self.name] for run in runs]
        return "" if None in values else self._words(values, "")

    def apart(self, runs: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> str:
        """Return by how much the mean of another policy differs, seed by seed, and the margin of 95%."""
        return self._words([run[self.name] - other[self.name] for run, other in zip(runs, others, strict=True)], "+")

    def _words(self, values: Sequence[float], sign: str) -> str:
        mean, margin = _interval(values)
        word = short(mean / self.factor)
        word = f"+{word}" if sign and mean > 0 else word
        return word if margin is None else f"{word} ± {short(margin / self.factor, 2)}"


_ALONE: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "median_jct": "median", "p95_jct": "p95", "p99_jct": "p99", "mean_wait": "mean wait"},
    {
        "makespan": "makespan",
        "utilisation": "busy",
        "mean_slowdown": "slowdown",
        "interruptions": "stops/job",
        "worst_rho": "worst rho",
        "regret": "regret",
    },
)
_WITH_SEEDS: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "p99_jct": "p99 JCT", "makespan": "makespan"},
    {"utilisation": "busy", "mean_slowdown": "slowdown", "interruptions": "stops/job", "regret": "regret"},
)
"""Tables of figures, and what people are told they are."""
_TIMES = ("mean_jct", "median_jct", "p95_jct", "p99_jct", "mean_wait", "makespan")
_SHARES = ("utilisation", "regret")


def _interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and half the width of its 95% interval."""
    import numpy as np

    from gangplan.simulator.metrics import interval

    return interval(np.array(values, dtype=float))


def _seeds(text: str | None, first: int, setting: Setting) -> list[int]:
    """Return the seeds asked for."""
    if text is None:
        return [first]
    if not setting.random:
        raise InstanceError("seeds", "change nothing here: give --mtbf and --mttr, --rounds, or --like")
    found = wholes(text)
    chosen = list(found) if "," in text else list(range(first, first + found[0]))
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen) or len(chosen) > 10_000:
        raise InstanceError("seeds", f"{text!r} is not a number of seeds from 1 to 10000, nor a list of several")
    return chosen


def _shape(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and 0 < int(part) <= 10**7 for part in parts):
        raise InstanceError("cluster", f"{text!r} is not nodes x GPUs, like 20x8")
    return int(parts[0]), int(parts[1])


def _failures(mtbf: float | None, mttr: float | None) -> tuple[float, float] | None:
    """Return the mean times up and down, None if no node fails."""
    if mtbf is None and mttr is None:
        return None
    if mtbf is None or mttr is None:
        raise InstanceError("mttr" if mttr is None else "mtbf", "is not given; failures need both")
    return mtbf, mttr
