"""`gangplan simulate --rounds`: leases on GPUs of several types, as Gavel's round-based scheduler gives them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError
from gangplan.instances.readers.gavel_trace import is_gavel_trace, read_gavel_trace
from gangplan.instances.readers.throughputs import read_throughputs
from gangplan.instances.readers.traces import read_trace

from .numbers import by_name
from .output import emit_blocks, emit_json, facts, table

if TYPE_CHECKING:
    from gangplan.simulator.rounds import Cluster, RoundJobs


def simulate_rounds(
    trace: str,
    cluster: str,
    policies: list[str],
    length: float,
    *,
    throughputs: str | None = None,
    speeds: str | None = None,
    queue: str | None = None,
    skip_bad: bool = False,
    as_json: bool = False,
) -> None:
    """Run TRACE in rounds and print a row, or an object, a policy.

    Args:
        trace: Gavel's, or any that `read_trace` reads.
        cluster: like ``8xV100+8xP100+8xK80``.
        policies: names of `gangplan.simulator.rounds.POLICIES`.
        length: of a round, seconds.
        throughputs: Gavel's table of measured steps a second, for Gavel's traces.
        speeds: for other traces: how fast each type is, like ``v100=1,p100=0.6``; durations are on a type of speed 1.
        queue: of other traces, only the jobs of this virtual cluster.
        skip_bad: leave bad rows out and count them.
        as_json: print JSON.

    Raises:
        InstanceError: if an argument or a file is wrong.
    """
    from gangplan.simulator.rounds import parse_cluster, summary
    from gangplan.simulator.rounds import simulate_rounds as run

    shape = parse_cluster(cluster)
    jobs, skipped = _jobs(trace, shape, throughputs, speeds, queue, skip_bad)
    found: list[dict[str, Any]] = []
    for name in policies:
        figures = asdict(summary(run(jobs, shape, name, length=length)))
        found.append({"policy": name, "round": length} | figures)
    if as_json:
        emit_json([one | {"skipped": len(skipped)} for one in found])
        return
    head = facts(
        [
            ("trace", f"{trace}: {jobs.n_jobs} jobs of 1 to {jobs.gpus.max()} GPUs"),
            ("cluster", " + ".join(f"{n} {kind}" for kind, n in zip(shape.types, shape.count, strict=True))),
            ("rounds", f"{length:g} s"),
            *(("skipped", words) for words in skipped[:5]),
            *([("skipped", f"{len(skipped) - 5} more rows")] if len(skipped) > 5 else []),
        ]
    )
    names = ("policy", "mean JCT, s", "median", "p95", "p99", "makespan, s", "utilisation", "mean rho", "worst")
    rows = [
        (
            one["policy"],
            *(f"{one[key]:.3f}" for key in ("mean_jct", "median_jct", "p95_jct", "p99_jct", "makespan")),
            f"{one['utilisation']:.1%}",
            *(f"{one[key]:.3f}" for key in ("mean_rho", "worst_rho")),
        )
        for one in found
    ]
    emit_blocks(head, table(names, rows))


def _jobs(
    trace: str, cluster: Cluster, throughputs: str | None, speeds: str | None, queue: str | None, skip_bad: bool
) -> tuple[RoundJobs, list[str]]:
    from gangplan.simulator.rounds import from_gavel, from_workload

    if throughputs is not None:
        if speeds is not None or queue is not None:
            raise InstanceError("throughputs", "are for Gavel's traces, which take no speeds and have no queues")
        found = read_gavel_trace(trace, skip_bad=skip_bad)
        return from_gavel(found, read_throughputs(throughputs), cluster), list(found.skipped)
    if is_gavel_trace(trace):
        raise InstanceError("throughputs", f"{trace} is Gavel's, it needs a table of them")
    if speeds is None:
        raise InstanceError("speeds", f"{trace} names no models: say how fast each type is, like v100=1,p100=0.6")
    read = read_trace(trace, skip_bad=skip_bad)
    workload = read.workload if queue is None else read.workload.only(queue)
    return from_workload(workload, by_name(speeds.lower(), "speeds"), cluster), read.skipped
