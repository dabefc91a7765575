"""Classic policies on every trace: mean JCT against what no schedule beats."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.engine.policies import POLICIES as NAMED
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions
from gangplan.simulator.rounds import parse_cluster, simulate_rounds

from .policies_bounds import Bounds, elastic, rigid, typed, unstopped
from .policies_tables import TABLES
from .policies_traces import TRACES, RoundTrace, Trace
from .rows import Task
from .study import Options, Study

LIMIT = 120.0
"""Seconds of the processor after which a simulation is cut off: its row has bounds only."""
_AGAIN = 0.1
"""Seconds after which it is cut off once more: the error is lost where compiled code that is called clears errors."""
_SLACK = 1e-9
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


def tasks(options: Options) -> Iterator[Task]:
    """Yield every trace, test seed and policy."""
    chosen = options.chosen(trace.case for trace in TRACES)
    for trace in (trace for trace in TRACES if trace.case in chosen):
        seeds = trace.seeds if isinstance(trace, Trace) else 1
        for seed in range(min(seeds, options.seeds or seeds)):
            yield from (Task(trace.case, p, seed) for p in options.policies or trace.labels)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Simulate a policy on a trace.

    Raises:
        InstanceError: if the data of the trace is not there.
        AssertionError: if a schedule is better than the bound.
    """
    trace = next(trace for trace in TRACES if trace.case == task.case)
    ready, began = _ready(trace, options.data, task.seed), time.process_time()
    found = cut_off(partial(ready.simulate, task.policy), LIMIT)
    bounds = {
        "jct_bound": ready.bounds.mean_jct,
        "makespan_bound": ready.bounds.makespan,
        "unstopped_bound": None if _interferes(task.policy) else ready.bounds.unstopped,
    }
    names = ("mean_jct", "p99_jct", "makespan", "utilisation")
    figures = {} if found is None else {name: getattr(found, name) for name in names}
    if found is not None:
        for name, least in bounds.items():
            value = found.makespan if name == "makespan_bound" else found.mean_jct
            assert least is None or value >= least * (1 - _SLACK), f"{task}: {name} {least} is above a schedule"
    sizes = {"jobs": ready.jobs, "gpus": ready.gpus, "load": ready.load}
    return {**sizes, **figures, **bounds, "seconds": time.process_time() - began}


def cut_off(run: Callable[[], Any], limit: float) -> Any:
    """Return what a function returns, None if it takes more seconds of the processor."""
    cuts = 0

    def cut(number: int, frame: Any) -> None:
        nonlocal cuts
        cuts += 1
        raise CutOffError

    before = signal.signal(signal.SIGPROF, cut)
    signal.setitimer(signal.ITIMER_PROF, limit, _AGAIN)
    try:
        return run()
    except Exception as error:
        if not (cuts or _is_cut(error)):  # a compiler that is cut off raises what it likes
            raise
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _is_cut(error: BaseException | None) -> bool:
    """Return whether an error comes from the signal: compiled code that it meets raises others because of it."""
    return error is not None and (isinstance(error, CutOffError) or _is_cut(error.__cause__))


@lru_cache(maxsize=1)
def _ready(trace: Trace | RoundTrace, data: Path, seed: int) -> Ready:
    if trace.needs and not (data / trace.needs).exists():
        raise InstanceError("data", f"there is no {trace.needs}")
    if isinstance(trace, RoundTrace):
        jobs, cluster = trace.make(data), parse_cluster(trace.cluster)
        # on the machine that a mean GPU of the cluster is to each job
        mean = jobs.speed @ np.array(cluster.count) / cluster.gpus
        load = float((jobs.gpus * jobs.steps / mean).sum() / max(np.ptp(jobs.submit), 1.0) / cluster.gpus)
        leases = partial(simulate_rounds, jobs, cluster)
        return Ready(jobs.n_jobs, cluster.gpus, load, typed(jobs, cluster), lambda label: summary(leases(label)))
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


def _interferes(label: str) -> bool:
    """Return whether a policy stops jobs or shares their GPUs; those of rounds do."""
    make = NAMED.get(label.split(maxsplit=1)[0]) if " " in label else None
    return make is None or any(getattr(make(), field, False) for field in ("preemptive", "shared"))


STUDY = Study(
    "policies",
    (
        *("jobs", "gpus", "load", "mean_jct", "p99_jct", "makespan", "utilisation"),
        *("jct_bound", "makespan_bound", "unstopped_bound", "seconds"),
    ),
    tasks,
    measure,
    {"policies.md": TABLES},
)
"""Load is the work of the trace over what the GPUs can do while jobs are submitted; utilisation, GPU seconds held over
those there were. No schedule is below a bound; `unstopped_bound` is of those that neither stop jobs nor share GPUs."""
