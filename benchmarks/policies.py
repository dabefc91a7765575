"""Simulate every classic policy on every trace that benchmarks/policies.csv does not have yet."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.engine.policies import POLICIES as NAMED
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions
from gangplan.simulator.rounds import parse_cluster, simulate_rounds

from .ledger import ROOT, measured_commit
from .policies_bounds import Bounds, elastic, rigid, typed, unstopped
from .policies_rows import POLICY_ROWS, PROTOCOL, PolicyRow, read
from .policies_traces import TRACES, RoundTrace, Trace
from .records import append_records

DATA = ROOT.parent / "shared" / "data"
LIMIT = 120.0
"""Seconds of the processor after which a simulation is cut off."""
_SLACK = 1e-9
_PATIENT = 0.9
"""Of the limit: what was cut off sooner is run again."""
OVERHEAD = 0.1


class CutOffError(Exception):
    """A simulation takes too long."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Jobs of a trace and one seed: their bounds, and what simulates a policy."""

    jobs: int
    gpus: int
    load: float
    bounds: Bounds
    simulate: Callable[[str], Any]


def run(
    traces: Sequence[Trace | RoundTrace] = TRACES,
    path: Path = POLICY_ROWS,
    *,
    data: Path = DATA,
    only: str = "",
    limit: float = LIMIT,
    say: Callable[[str], None] = print,
) -> list[PolicyRow]:
    """Run what is missing, with a line for each; the file is written after each simulation. Return the new rows.

    Raises:
        AssertionError: if a schedule is better than the bound.
    """
    new, commit = list[PolicyRow](), measured_commit()
    known = {row.key for row in read(path) if row.mean_jct is not None or row.seconds > _PATIENT * limit}
    for trace in traces:
        if trace.needs and not (data / trace.needs).exists():
            say(f"{trace.name}: left out, there is no {trace.needs} in the data folder")
            continue
        for seed in range(trace.seeds if isinstance(trace, Trace) else 1):
            keys = [(PROTOCOL, trace.name, trace.cluster, label, seed) for label in _labels(trace)]
            missing = [key for key in keys if key not in known and only in f"{key[1]} {key[3]}"]
            if not missing:
                continue
            ready = _ready(trace, data, seed)
            for _, _, _, label, _ in missing:
                row = _simulated(trace, ready, label, seed, limit, commit)
                new.append(row)
                append_records([row], path)
                say(_line(row))
    return new


def _labels(trace: Trace | RoundTrace) -> Iterator[str]:
    for policy in trace.policies:
        yield policy if isinstance(policy, str) else " ".join(policy)


def _ready(trace: Trace | RoundTrace, data: Path, seed: int) -> Ready:
    if isinstance(trace, RoundTrace):
        jobs, cluster = trace.make(data), parse_cluster(trace.cluster)

        def leases(label: str) -> Any:
            return summary(simulate_rounds(jobs, cluster, label))

        # on the machine that a mean GPU of the cluster is to each job
        mean = jobs.speed @ np.array(cluster.count) / cluster.gpus
        load = float((jobs.gpus * jobs.steps / mean).sum() / max(np.ptp(jobs.submit), 1.0) / cluster.gpus)
        return Ready(jobs.n_jobs, cluster.gpus, load, typed(jobs, cluster), leases)
    work, gpus = trace.make(data, seed), trace.nodes * trace.gpus
    if trace.degrees:
        bounds = elastic(work, DegreeOptions.scaling(work, trace.degrees, OVERHEAD), gpus)
    else:
        bounds = (unstopped if trace.time_indexed else rigid)(work, gpus)
    held = float((work.duration * work.gpus * np.asarray(work.share)).sum())
    load = held / max(float(np.ptp(work.submit)), 1.0) / gpus
    return Ready(work.n_jobs, gpus, load, bounds, partial(_nodes, trace, work))


def _nodes(trace: Trace, work: Workload, label: str) -> Any:
    policy, discipline = label.split()
    given = {"cpu": trace.cpu, "memory": trace.memory, "degrees": trace.degrees, "overhead": OVERHEAD}
    plain = trace.degrees and policy != "optimus"  # these keep to the GPUs that jobs ask for
    given["degrees"] = () if plain else trace.degrees
    return summary(
        simulate_named(work, trace.nodes, trace.gpus, policy, discipline=discipline, consolidate=True, **given)  # type: ignore[arg-type]
    )


def _simulated(trace: Trace | RoundTrace, ready: Ready, label: str, seed: int, limit: float, commit: str) -> PolicyRow:
    began = time.process_time()
    before = signal.signal(signal.SIGPROF, _cut)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        found = ready.simulate(label)
    except (CutOffError, SystemError) as error:
        if not _cut_off(error):
            raise
        found = None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    row = PolicyRow(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit,
        protocol=PROTOCOL,
        trace=trace.name,
        cluster=trace.cluster,
        policy=label,
        seed=seed,
        jobs=ready.jobs,
        gpus=ready.gpus,
        load=ready.load,
        mean_jct=None if found is None else found.mean_jct,
        p99_jct=None if found is None else found.p99_jct,
        makespan=None if found is None else found.makespan,
        utilisation=None if found is None else found.utilisation,
        jct_bound=ready.bounds.mean_jct,
        makespan_bound=ready.bounds.makespan,
        unstopped_bound=None if _interferes(label) else ready.bounds.unstopped,
        seconds=time.process_time() - began,
    )
    for name in ("regret", "unstopped_regret", "makespan_regret"):
        value = getattr(row, name)
        assert value is None or value >= -_SLACK, f"{trace.name}, {label}: {name} is {value}: a bound above a schedule"
    return row


def _cut_off(error: BaseException | None) -> bool:
    """Return whether an error comes from the signal: compiled code that it meets raises others because of it."""
    return error is not None and (isinstance(error, CutOffError) or _cut_off(error.__cause__))


def _interferes(label: str) -> bool:
    """Return whether a policy stops jobs or shares their GPUs; those of rounds do."""
    make = NAMED.get(label.split(maxsplit=1)[0]) if " " in label else None
    return make is None or any(getattr(make(), field, False) for field in ("preemptive", "shared"))


def _cut(number: int, frame: Any) -> None:
    raise CutOffError


def _line(row: PolicyRow) -> str:
    if row.mean_jct is None or row.regret is None:
        return f"{row.trace:40} {row.policy:24} seed {row.seed}  cut off after {row.seconds:.0f} s"
    return (
        f"{row.trace:40} {row.policy:24} seed {row.seed}  mean JCT {row.mean_jct:10.0f}  regret {row.regret:8.1%}  "
        f"makespan {row.makespan:10.0f}  {row.seconds:6.1f} s"
    )
