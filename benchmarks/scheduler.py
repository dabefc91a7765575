"""`Scheduler`: how long a decision takes by size of the cluster, and mean JCTs of traces beside classic policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload

from .rows import Task
from .scheduler_latency import NODES
from .scheduler_latency import measure as timed
from .scheduler_tables import STOPS, TABLES, cluster, draw
from .scheduler_traces import CASES, Case, bound, labels, simulated
from .study import Options, Study

PRICE, POLICY = 300.0, "hybrid"


def tasks(options: Options) -> Iterator[Task]:
    """Yield every size of cluster without stops and with them, then every trace and policy."""
    names = {cluster(gpus) + end: (POLICY,) for gpus in NODES for end in ("", STOPS)}
    names |= {case.name: tuple(labels(case)) for case in CASES}
    for name in options.chosen(names):
        yield from (Task(name, policy, 0) for policy in options.policies or names[name])


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Time decisions on a cluster, or run a trace; nothing is drawn there, so that the seed changes nothing.

    Raises:
        InstanceError: if the data of a trace is not there.
        AssertionError: if a schedule is better than the bound.
    """
    for gpus in NODES:
        if task.case in (cluster(gpus), cluster(gpus) + STOPS):
            return {"gpus": gpus, **asdict(timed(gpus, task.seed, PRICE if task.case.endswith(STOPS) else None))}
    case = next(case for case in CASES if case.name == task.case)
    work, least = _ready(case, options.data)
    found = simulated(case, work, task.policy)
    assert found.mean_jct >= least * (1 - 1e-9), f"{task}: {found.mean_jct} is below {least}"
    return {"jobs": work.n_jobs, "bound": least, **asdict(found)}


@lru_cache(maxsize=1)
def _ready(case: Case, data: Path) -> tuple[Workload, float]:
    if not (data / case.needs).exists():
        raise InstanceError("data", f"there is no {case.needs}")
    work = case.make(data)
    return work, bound(case, work)


STUDY = Study(
    "scheduler",
    ("gpus", "jobs", "p99", "median", "thread", "memory", "mean_jct", "bound", "seconds"),
    tasks,
    measure,
    TABLES,
    {"figure": lambda options: draw(STUDY.found(options.rows))},
)
"""Of decisions 99th percentile and median by the clock and, `thread`, the former of their thread, seconds; of traces of
the clock; bytes resident at most; seconds of the processor. No schedule without stops has a mean below the
bound."""
