"""Durations as they are: known, limits that are too long, history, nothing; `Scheduler` and its rivals on traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, simulate
from gangplan.simulator.outcome import Outcome

from .durations_rivals import THRESHOLDS, Rolling, Told, run
from .durations_tables import OURS, RULES, TABLES
from .durations_traces import CASES, GPUS, LAST, TEST, TUNING, Case
from .rows import Task
from .study import Options, Study

KNOWN = {
    "known": (),
    "limits": ("user", "title", "queue", "limit"),
    "history": ("user", "title", "queue"),
    "nothing": (),
}
"""What is told of a job beside its gang, by what is known of durations; of nothing, not the model either."""
PRICE = 600.0
"""Seconds that a stop costs: ten minutes."""
RIVALS = (*RULES, *(f"tiresias {name}" for name in THRESHOLDS))
GNN, DEAR = ("gnn", "gnn stops"), "Scheduler stops 1800"
MINE = (*OURS, *GNN, DEAR)


def tasks(options: Options) -> Iterator[Task]:
    """Yield every window, knowledge, trace and policy; nothing of ours is run on windows for tuning.

    Rivals that look at no duration are run once, where they are known; the network where only history is.
    """
    for window, more in (*((w, False) for w in (*TUNING, *TEST, LAST)), *((w, True) for w in TEST)):
        for case, known in product(CASES, KNOWN):
            rivals = RIVALS if known == "known" else RULES[1:]
            mine = () if window in TUNING else OURS
            here = (*rivals, *mine)
            if more:
                here = GNN if known == "history" else (DEAR,) if known == "limits" else ()
            for policy in here:
                if options.chosen([f"{case.name}: {known}"]) and (not options.policies or policy in options.policies):
                    yield Task(f"{case.name}: {known}", policy, window)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Run a window of a trace by a policy.

    Raises:
        InstanceError: if the data of the trace is not there.
    """
    name, known = task.case.rsplit(": ", 1)
    case = next(case for case in CASES if case.name == name)
    work, began = _ready(case, options.data, task.seed), time.process_time()
    outcome = simulated(case, work, known, task.policy)
    jct = outcome.finish - work.submit
    wait = jct - work.duration
    figures = {"mean_jct": jct.mean(), "p95_jct": np.quantile(jct, 0.95), "mean_wait": wait.mean()}
    return figures | {"p95_wait": np.quantile(wait, 0.95), "seconds": time.process_time() - began}


def simulated(case: Case, work: Workload, known: str, policy: str) -> Outcome:
    """Return what a policy makes of a window that is told so much of durations."""
    if known == "nothing":
        work = Workload(work.names, work.submit, work.gpus, work.duration)
    if policy not in MINE:
        return run(work, case.nodes, GPUS, policy, _estimates(work, known), PRICE)
    which, *stops = policy.split()
    price = float(stops[1]) if len(stops) > 1 else PRICE if stops else None
    durations = "told" if known == "known" else "history"
    rule = "gnn" if which == "gnn" else "hybrid"
    mine = SchedulerPolicy(known == "known", KNOWN[known], policy=rule, price=price, durations=durations)
    fleet = Fleet.regular(1, case.nodes, GPUS, cpu=1e15, memory=1e15)
    return simulate(work, fleet, EngineScheduler((mine,), "head", True, True), preempt_cost=price or 0.0)


def _estimates(work: Workload, known: str) -> Callable[[], Told | Rolling]:
    if known == "known":
        return partial(Told, work.duration)
    if known == "limits":
        assert work.limit is not None
        return partial(Told, np.asarray(work.limit))
    return partial(Rolling, known == "history")


@lru_cache(maxsize=4)
def _ready(case: Case, data: Path, window: int) -> Workload:
    if case.needs and not (data / case.needs).exists():
        raise InstanceError("data", f"there is no {case.needs}")
    return case.workload(data, window)


STUDY = Study(
    "durations",
    ("mean_jct", "p95_jct", "mean_wait", "p95_wait", "seconds"),
    tasks,
    measure,
    TABLES,
)
"""Of jobs mean and 95th percentile of completion time and of queue delay, seconds; seconds of the processor."""
