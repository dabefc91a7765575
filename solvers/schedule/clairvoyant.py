"""What no policy beats on a trace, online or clairvoyant: the yardstick of regret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.workload import Workload

from ..run import Run
from .classic import lists
from .local_search import local_search
from .prepare import ShiftedRun, prepare
from .starts import starts
from .workload_bounds import makespan_bound, mean_jct_bound

EXACT, PRICED = 100, 2_000
"""Jobs up to which schedules are searched for, and up to which the time-indexed LP is solved."""


@dataclass(frozen=True, slots=True)
class Clairvoyant:
    """What is known of the best schedule: `bound` on any goal, `objective` of the best one found, if any; seconds."""

    bound: float
    objective: float | None = None


def clairvoyant(workload: Workload, gpus: int, goal: str = "mean_jct", *, time_limit: float = 30.0) -> Clairvoyant:
    """Bound the best schedule of a trace on so many GPUs that are only counted, without preemption.

    It bounds every policy on nodes too, since these constrain it more. Up to `PRICED` jobs the bound is that of the
    time-indexed LP or better, and up to `EXACT` jobs the best schedule is searched for; beyond, relaxations that take
    O(n log n): see `mean_jct_bound` and `makespan_bound`. `time_limit`: seconds for up to `PRICED` jobs.
    """
    require_choice(goal, "goal", ("mean_jct", "makespan"))
    if (workload.gpus > gpus).any():
        i = int(np.argmax(workload.gpus > gpus))
        raise InstanceError(f"gpus[{i}]", f"job {workload.names[i]} needs {workload.gpus[i]}, the cluster has {gpus}")
    quick = (mean_jct_bound if goal == "mean_jct" else makespan_bound)(workload, gpus)
    if workload.n_jobs > PRICED or goal == "makespan":
        return Clairvoyant(quick)
    problem = ScheduleProblem.of(workload, Pool(gpus), goal)
    run, p = Run(problem, time_limit=time_limit), prepare(problem)
    run.raise_bound(quick, "relaxation")
    seen = ShiftedRun(run, p)
    lists(seen, p)
    if not run.stopped:
        starts(seen, p)
    if workload.n_jobs <= EXACT and not run.stopped:
        local_search(seen, p)
    bound = quick if run.bound is None else max(quick, run.bound)
    return Clairvoyant(bound if run.objective is None else min(bound, run.objective), run.objective)
