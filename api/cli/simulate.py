"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import read_trace

from . import options
from .numbers import number
from .output import emit_blocks, emit_json, facts, table
from .rounds import simulate_rounds


def simulate(
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="CSV with job_id, num_gpu, submit_time, duration; Philly's; Tiresias'"),
    ],
    cluster: Annotated[
        str, typer.Option(help="20x8 is 20 nodes of 8 GPUs; in rounds, GPUs by type: 8xV100+8xK80", metavar="NxM")
    ],
    policy: Annotated[
        list[str] | None, typer.Option(help="fifo, sjf, ljf, smallest, least_work; may be repeated", metavar="NAME")
    ] = None,
    discipline: Annotated[
        str, typer.Option(help="head (the first blocks), overtake (who fits starts) or easy (backfill)", metavar="NAME")
    ] = "head",
    consolidate: Annotated[
        bool, typer.Option("--consolidate/--counted", help="jobs on as few nodes as hold them, or GPUs counted only")
    ] = False,
    queue: Annotated[str | None, typer.Option(help="only the jobs of this virtual cluster", metavar="NAME")] = None,
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
    as_json: options.AsJson = False,
) -> None:
    """Run the jobs of TRACE on a cluster of equal nodes, without preemption, and show when they were done."""
    if rounds is not None:
        if discipline != "head" or consolidate:
            raise InstanceError("rounds", "of leases know no discipline and no consolidation")
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
    read = read_trace(trace, skip_bad=skip_bad)
    workload = read.workload if queue is None else read.workload.only(queue)
    from gangplan.simulator.trace import simulate as run
    from gangplan.simulator.trace import summary

    found: list[dict[str, Any]] = []
    for name in policy or ["fifo"]:
        outcome = run(workload, nodes, gpus, policy=name, discipline=discipline, consolidate=consolidate)
        figures = asdict(summary(outcome))
        found.append({"policy": name, "discipline": discipline, "consolidate": consolidate} | figures)
    if as_json:
        emit_json([one | {"skipped": len(read.skipped)} for one in found])
        return
    head = facts(
        [
            ("trace", f"{trace}: {workload.n_jobs} jobs of 1 to {workload.gpus.max()} GPUs"),
            ("cluster", f"{nodes} nodes of {gpus} GPUs, {'consolidated' if consolidate else 'counted only'}"),
            ("discipline", discipline),
            *(("skipped", words) for words in read.skipped[:5]),
            *([("skipped", f"{len(read.skipped) - 5} more rows")] if len(read.skipped) > 5 else []),
        ]
    )
    names = ("policy", "mean JCT, s", "median", "p95", "p99", "mean wait", "makespan, s", "utilisation", "slowdown")
    rows = [
        (
            one["policy"],
            *(f"{one[key]:.3f}" for key in ("mean_jct", "median_jct", "p95_jct", "p99_jct", "mean_wait", "makespan")),
            f"{one['utilisation']:.1%}",
            f"{one['mean_slowdown']:.4g}",
        )
        for one in found
    ]
    emit_blocks(head, table(names, rows))


def _shape(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and 0 < int(part) <= 10**7 for part in parts):
        raise InstanceError("cluster", f"{text!r} is not nodes x GPUs, like 20x8")
    return int(parts[0]), int(parts[1])
