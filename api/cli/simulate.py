"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import read_trace
from gangplan.simulator.trace import Outcome

from . import options
from .numbers import by_name, number, whole, wholes
from .output import emit_blocks, emit_json, facts, table
from .progress import Bar
from .rounds import simulate_rounds
from .simulation_files import check_files, write_files

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
            help="fifo, sjf, ljf, smallest, least_work, srtf, tiresias, drf, tetris, gandiva, optimus; may be repeated",
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
    seed: Annotated[int, typer.Option(help="of the failures", metavar="N", parser=whole)] = 0,
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
    plot: Annotated[str | None, typer.Option(help="draw the schedules, .html or .png", metavar="FILE")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the jobs of TRACE on a cluster of equal nodes and show when they were done."""
    engine = {
        "discipline": discipline,
        "consolidate": consolidate,
        "preemptive": preempt,
        "preempt_cost": preempt_cost,
        "checkpoint_interval": checkpoint_interval,
        "outages": _outages(mtbf, mttr, seed),
        "degrees": degrees or (),
        "overhead": overhead,
        "cpu": node_cpu,
        "memory": node_memory,
        "per_queue": per_queue,
    }
    if rounds is not None:
        alien = [name for name, value in engine.items() if value != _PLAIN.get(name)]
        if alien:
            raise InstanceError("rounds", f"of leases know no {', '.join(alien)}")
        if out is not None or plot is not None:
            raise InstanceError("out" if plot is None else "plot", "is not there in --rounds")
        simulate_rounds(
            trace,
            cluster,
            policy or ["fifo"],
            rounds,
            throughputs=throughputs,
            speeds=speeds,
            queue=queue,
            skip_bad=skip_bad,
            as_json=as_json,
        )
        return
    if throughputs is not None or speeds is not None:
        raise InstanceError("throughputs" if speeds is None else "speeds", "mean something in --rounds only")
    nodes, gpus = _shape(cluster)
    check_files(trace, out, plot)
    read = read_trace(trace, skip_bad=skip_bad, seconds=by_name(lasts or "", "lasts"))
    workload = read.workload if queue is None else read.workload.only(queue)
    from gangplan.simulator.engine import simulate_named
    from gangplan.simulator.metrics import regret, summary

    found: list[dict[str, Any]] = []
    outcomes: dict[str, Outcome] = {}
    names = policy or ["fifo"]
    with Bar("simulating", hidden=as_json) as bar:
        for i, name in enumerate(names):

            def progress(share: float, before: int = i) -> None:
                bar((before + share) / len(names))

            outcome = simulate_named(workload, nodes, gpus, name, **engine, progress=progress)
            progress(1.0)
            asked = {"policy": name, "discipline": discipline, "consolidate": consolidate}
            found.append(asked | asdict(summary(outcome)) | {"regret": regret(outcome)})
            if out is not None or plot is not None:
                outcomes[name] = outcome
    if outcomes:
        write_files(outcomes, trace, out, plot)
    if as_json:
        emit_json([one | {"skipped": len(read.skipped), "left_out": read.left_out} for one in found])
        return
    head = facts(
        [
            ("trace", f"{trace}: {workload.n_jobs} jobs of 1 to {workload.gpus.max()} GPUs"),
            (
                "cluster",
                f"{nodes} nodes of {gpus} GPUs{' for each queue' if per_queue else ''}, "
                f"{'consolidated' if consolidate else 'counted only'}",
            ),
            ("discipline", discipline),
            *(("left out", f"{count} rows {reason}") for reason, count in read.left_out.items()),
            *(("skipped", words) for words in read.skipped[:5]),
            *([("skipped", f"{len(read.skipped) - 5} more rows")] if len(read.skipped) > 5 else []),
        ]
    )
    columns = ("policy", "mean JCT, s", "median", "p95", "p99", "mean wait", "makespan, s", "utilisation", "slowdown")
    rows = [
        (
            one["policy"],
            *(f"{one[key]:.3f}" for key in ("mean_jct", "median_jct", "p95_jct", "p99_jct", "mean_wait", "makespan")),
            f"{one['utilisation']:.1%}",
            f"{one['mean_slowdown']:.4g}",
            f"{one['interruptions']:.3g}",
            "" if one["regret"] is None else f"{one['regret']:.1%}",
        )
        for one in found
    ]
    emit_blocks(head, table((*columns, "stops a job", "regret"), rows))


def _shape(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and 0 < int(part) <= 10**7 for part in parts):
        raise InstanceError("cluster", f"{text!r} is not nodes x GPUs, like 20x8")
    return int(parts[0]), int(parts[1])


def _outages(mtbf: float | None, mttr: float | None, seed: int) -> Any:
    """Return the failures asked for, None if there are none."""
    from gangplan.simulator.engine import Outages

    if mtbf is None and mttr is None:
        return None
    if mtbf is None or mttr is None:
        raise InstanceError("mttr" if mttr is None else "mtbf", "is not given; failures need both")
    return Outages(mtbf=mtbf, mttr=mttr, seed=seed)
