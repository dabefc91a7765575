"""What no policy beats on a trace, online or clairvoyant: the yardstick of regret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.workload import Workload

from ..compiled.kernel import Floats, Ints, inner, kernel
from ..run import Run
from .lists import lists
from .local_search import local_search
from .prepare import prepare
from .priced import starts

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
    lists(run, p)
    if not run.stopped:
        starts(run, p)
    if workload.n_jobs <= EXACT and not run.stopped:
        local_search(run, p)
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
    finish, busy = _squashed(np.array(submit, float), work, np.argsort(submit, kind="stable"))
    alone = duration.mean()
    return float(max(alone, finish / len(work) - submit.mean(), busy / len(work) + alone / 2 - submit.mean()))


def makespan_bound(workload: Workload, gpus: int) -> float:
    """Return what the last completion is at least, seconds: of a job alone, of all work submitted from some time on."""
    submit, duration = np.asarray(workload.submit), np.asarray(workload.duration)
    order = np.argsort(-submit, kind="stable")
    work = np.cumsum((duration * workload.gpus * np.asarray(workload.share))[order]) / gpus
    return float(max((submit + duration).max(), (submit[order] + work).max()))


@kernel
def _squashed(submit: Floats, work: Floats, order: Ints) -> tuple[float, float]:
    """Return the sum of completions by shortest remaining work, and of mean busy times by least work."""
    totals = np.zeros(2)
    keys, jobs = np.empty(len(order)), np.empty(len(order), np.int64)
    for rule in range(2):
        left = work.copy()
        now, total, i, n, waiting = 0.0, 0.0, 0, len(order), 0
        while i < n or waiting:
            if not waiting:
                now = max(now, submit[order[i]])
            while i < n and submit[order[i]] <= now:
                waiting = _push(keys, jobs, waiting, work[order[i]], order[i])
                i += 1
            j = jobs[0]
            waiting = _pop(keys, jobs, waiting)
            until = now + left[j]
            if i < n:
                until = min(until, submit[order[i]])
            # the last bit is cut off by rounding now and then
            over = i == n or now + left[j] <= submit[order[i]]
            if rule == 1:
                total += (until - now) / work[j] * (now + until) / 2 if work[j] > 0 else now
            elif over:
                total += until
            left[j] -= until - now
            now = until
            if not over:
                waiting = _push(keys, jobs, waiting, left[j] if rule == 0 else work[j], j)
        totals[rule] = total
    return totals[0], totals[1]


@inner
def _push(keys: Floats, jobs: Ints, count: int, key: float, job: int) -> int:
    """Put a job on a heap, of equal keys the lower one first; return how many are on it."""
    at = count
    while at > 0:
        up = (at - 1) // 2
        if keys[up] < key or (keys[up] == key and jobs[up] < job):
            break
        keys[at], jobs[at], at = keys[up], jobs[up], up
    keys[at], jobs[at] = key, job
    return count + 1


@inner
def _pop(keys: Floats, jobs: Ints, count: int) -> int:
    """Take the first job off a heap; return how many are left."""
    last = count - 1
    key, job, at = keys[last], jobs[last], 0
    while 2 * at + 1 < last:
        x = 2 * at + 1
        if x + 1 < last and (keys[x + 1] < keys[x] or (keys[x + 1] == keys[x] and jobs[x + 1] < jobs[x])):
            x += 1
        if key < keys[x] or (key == keys[x] and job < jobs[x]):
            break
        keys[at], jobs[at], at = keys[x], jobs[x], x
    keys[at], jobs[at] = key, job
    return last
