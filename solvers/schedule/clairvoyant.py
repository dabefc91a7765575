"""What no policy beats on a trace, online or clairvoyant: the yardstick of regret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.workload import Workload

from ..compiled.kernel import kernel
from ..run import Run
from .bounds import flows
from .classic import lists
from .local_search import local_search
from .prepare import ShiftedRun, prepare
from .starts import starts

_flows = kernel(flows)
EXACT, PRICED = 100, 2_000
"""Jobs up to which schedules are searched for, and up to which the time-indexed LP is solved."""


@dataclass(frozen=True, slots=True)
class Clairvoyant:
    """What is known of the best schedule of a trace.

    Attributes:
        bound: no schedule has a smaller goal, seconds.
        objective: that of the best schedule found, `None` if none was looked for.
    """

    bound: float
    objective: float | None = None


def clairvoyant(workload: Workload, gpus: int, goal: str = "mean_jct", *, time_limit: float = 30.0) -> Clairvoyant:
    """Bound the best schedule of a trace on so many GPUs that are only counted, without preemption.

    It bounds every policy on nodes too, since these constrain it more. Up to `PRICED` jobs the bound is that of the
    time-indexed LP or better, and up to `EXACT` jobs the best schedule is searched for; beyond, relaxations that take
    O(n log n): see `mean_jct_bound` and `makespan_bound`.

    Args:
        workload: the jobs, n of them.
        gpus: of the cluster.
        goal: ``mean_jct`` or ``makespan``.
        time_limit: seconds for up to `PRICED` jobs.

    Raises:
        InstanceError: if an argument is wrong or a job never fits.
    """
    if goal not in ("mean_jct", "makespan"):
        raise InstanceError("goal", f"{goal!r} is not one of mean_jct, makespan")
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


def mean_jct_bound(workload: Workload, gpus: int) -> float:
    """Return the largest of three relaxations of the mean completion less submission, seconds.

    Each job alone. All work squashed on one preemptive machine as fast as all GPUs together, by shortest remaining time
    (Schrage 1968). On the same machine the least sum of mean busy times, which a job's completion exceeds by half its
    duration (Goemans 1996). A job that holds a share of its GPUs counts as so much less work.
    """
    submit, duration = np.asarray(workload.submit), np.asarray(workload.duration)
    work = duration * workload.gpus * np.asarray(workload.share) / gpus
    order, gain, n = np.argsort(submit, kind="stable"), np.ones(len(work)), len(work)
    ended, busy = _flows(submit, work, gain, order, True)[0], _flows(submit, work, gain, order, False)[1]
    alone = duration.mean()
    # sums of n terms are rounded n times, and so is the clock of whoever schedules
    bound = max(alone, ended / n, busy / n + alone / 2) * (1 - n * np.spacing(1.0))
    return max(0.0, float(bound - np.spacing((submit + duration).max())))


def makespan_bound(workload: Workload, gpus: int) -> float:
    """Return what the last completion is at least, seconds: of a job alone, of all work submitted from some time on."""
    submit, duration = np.asarray(workload.submit), np.asarray(workload.duration)
    order = np.argsort(-submit, kind="stable")
    work = np.cumsum((duration * workload.gpus * np.asarray(workload.share))[order]) / gpus
    return float(max((submit + duration).max(), (submit[order] + work).max()))
