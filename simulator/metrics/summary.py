"""Figures of a schedule."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet

from ..outcome import Outcome
from ..spans import Spans, restarts, spans
from .nodes import communication, fragmentation
from .series import available_gpus, period


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures in seconds, or shares from 0 to 1; docs/metrics.md has the formulas.

    Attributes:
        jobs, blocking_rate: how many ran, and the share of all jobs that were rejected.
        mean_jct, median_jct, p95_jct, p99_jct: of finish - submit.
        mean_wait, p99_wait: of start - submit.
        makespan: the last finish.
        throughput: jobs a second from the first submission to the last finish.
        work_rate: GPU seconds of work done a second over that time.
        utilisation: GPU seconds held over those there were in that time, nodes that were down taken out.
        goodput: of the GPU seconds held, what led to the end: not what went into restoring jobs, or was lost.
        fragmentation: the share of free GPUs that cannot serve a job of the trace's mix, while GPUs are free; None if
            GPUs were only counted.
        mean_slowdown, p99_slowdown: of the completion time over the duration, jobs of no duration left out.
        mean_rho, worst_rho: finish-time fairness, jobs of no duration left out.
        interruptions: how often a job was stopped before its end, a job.
        communication: seconds of a gigabyte, over the pairs of GPUs of a running job; None if no fleet is given or GPUs
            were only counted.
    """

    jobs: int
    blocking_rate: float
    mean_jct: float
    median_jct: float
    p95_jct: float
    p99_jct: float
    mean_wait: float
    p99_wait: float
    makespan: float
    throughput: float
    work_rate: float
    utilisation: float
    goodput: float
    fragmentation: float | None
    mean_slowdown: float
    p99_slowdown: float
    mean_rho: float
    worst_rho: float
    interruptions: float
    communication: float | None


def summary(outcome: Outcome, fleet: Fleet | None = None) -> Metrics:
    """Return the figures of `outcome`; of no job, if all were rejected, they are 0. `fleet` is for the network."""
    work, ran = outcome.workload, outcome.admitted
    jobs = int(np.count_nonzero(ran))
    if not jobs:
        known: dict[str, Any] = dict.fromkeys((field.name for field in fields(Metrics)), 0.0)
        return Metrics(**known | {"jobs": 0, "blocking_rate": 1.0, "fragmentation": None, "communication": None})
    parts = spans(outcome)
    submit, finish, duration = work.submit[ran], outcome.finish[ran], work.duration[ran]
    jct, wait = finish - submit, outcome.start[ran] - submit
    first, last = period(outcome)
    held = outcome.held
    there = float(available_gpus(outcome).integral(np.array([last]))[0])
    done = float((work.gpus * np.asarray(work.share))[ran] @ duration)
    runs = duration > 0
    slowdown, rho = jct[runs] / duration[runs], finish_time_fairness(outcome)
    p50, p95, p99 = np.quantile(jct, [0.5, 0.95, 0.99])
    return Metrics(
        jobs=jobs,
        blocking_rate=1 - jobs / work.n_jobs,
        mean_jct=float(jct.mean()),
        median_jct=float(p50),
        p95_jct=float(p95),
        p99_jct=float(p99),
        mean_wait=float(wait.mean()),
        p99_wait=float(np.quantile(wait, 0.99)),
        makespan=last,
        throughput=jobs / (last - first) if last > first else 0.0,
        work_rate=done / (last - first) if last > first else 0.0,
        utilisation=float(held.sum()) / there if there > 0 else 0.0,
        goodput=_goodput(outcome, parts, held),
        fragmentation=fragmentation(outcome),
        mean_slowdown=float(slowdown.mean()) if len(slowdown) else 1.0,
        p99_slowdown=float(np.quantile(slowdown, 0.99)) if len(slowdown) else 1.0,
        mean_rho=float(rho.mean()) if len(rho) else 1.0,
        worst_rho=float(rho.max(initial=0.0)) if len(rho) else 1.0,
        interruptions=(int(parts.opens.sum()) - jobs) / jobs,
        communication=None if fleet is None else communication(outcome, fleet, parts),
    )


def _goodput(outcome: Outcome, parts: Spans, held: FloatArray) -> float:
    """Return the useful share of what is held: while jobs get on, and of that the part of their work that is kept."""
    total = float(held.sum())
    if total <= 0:
        return 1.0
    lost, _ = restarts(outcome, parts)
    duration = outcome.workload.duration
    kept = np.divide(duration, duration + lost, out=np.ones(len(lost)), where=duration + lost > 0)
    useful = held * outcome.useful * kept[outcome.row_job]
    return float(useful.sum()) / total


def finish_time_fairness(outcome: Outcome) -> FloatArray:
    """Return each job's completion time over that on its own part of the cluster: jobs that ran and take some time.

    The part is 1/N of it, N the mean number of jobs that there were from its submission to its end (Mahajan et al.,
    NSDI 2020, section 3.1; Narayanan et al., OSDI 2020). How long a job takes there is `Outcome.alone`.
    """
    submit, finish = outcome.workload.submit[outcome.admitted], outcome.finish[outcome.admitted]
    alone = outcome.alone(company(submit, finish))
    rest = (outcome.workload.duration > 0)[outcome.admitted]
    return np.asarray((finish - submit)[rest] / alone[rest])


def company(submit: FloatArray, finish: FloatArray) -> FloatArray:
    """Return the mean number of jobs that there were during the stay of each, itself included, float64 (n,)."""
    first = submit.min(initial=np.inf)
    enter, leave = submit - first, finish - first
    stay = leave - enter
    # the integral of how many jobs there are up to t: sum of max(0, t - enter) - max(0, t - leave)
    there = _upto(enter, leave) - _upto(leave, leave) - _upto(enter, enter) + _upto(leave, enter)
    return np.asarray(np.maximum(1.0, np.divide(there, stay, out=np.ones(len(stay)), where=stay > 0)))


def _upto(events: FloatArray, times: FloatArray) -> FloatArray:
    """Return the sum over events of max(0, time - event) for each time."""
    ordered = np.sort(events)
    count = np.searchsorted(ordered, times, side="right")
    return np.asarray(count * times - np.concatenate([[0.0], np.cumsum(ordered)])[count])


def regret(outcome: Outcome) -> float | None:
    """Return the mean JCT over a bound on that of any schedule of these jobs, less 1; at least 0.

    The bound is that of `mean_jct_bound` on all GPUs of the cluster, in O(n log n): that regret is not 0 does not say
    that a better schedule exists. `None` where it does not hold: jobs were rejected, or chose their degree.
    """
    if outcome.options is not None or not outcome.admitted.all():
        return None
    from gangplan.solvers.schedule.workload_bounds import mean_jct_bound  # brings solvers, which take long to import

    bound = mean_jct_bound(outcome.workload, outcome.n_gpus)
    mean = float((outcome.finish - outcome.workload.submit).mean())
    return max(0.0, mean / bound - 1) if bound > 0 else 0.0
