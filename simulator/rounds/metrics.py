"""Figures of a round-based simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray

from .outcome import RoundOutcome


@dataclass(frozen=True, slots=True)
class RoundMetrics:
    """Figures in seconds, or shares from 0 to 1.

    Attributes:
        jobs: how many ran.
        mean_jct, median_jct, p95_jct, p99_jct: of finish - submit.
        makespan: the last finish.
        utilisation: GPU seconds worked over those there were from the first submission to the last finish.
        throughput: jobs a second over that time.
        mean_rho, worst_rho: finish-time fairness, see `finish_time_fairness`.
        rounds, allocations, leases: how many.
    """

    jobs: int
    mean_jct: float
    median_jct: float
    p95_jct: float
    p99_jct: float
    makespan: float
    utilisation: float
    throughput: float
    mean_rho: float
    worst_rho: float
    rounds: int
    allocations: int
    leases: int


def summary(outcome: RoundOutcome) -> RoundMetrics:
    """Return the figures of `outcome`."""
    jobs = outcome.jobs
    jct = outcome.finish - jobs.submit
    span = float(outcome.finish.max() - jobs.submit.min())
    rho = finish_time_fairness(outcome)
    p50, p95, p99 = np.quantile(jct, [0.5, 0.95, 0.99])
    return RoundMetrics(
        jobs=jobs.n_jobs,
        mean_jct=float(jct.mean()),
        median_jct=float(p50),
        p95_jct=float(p95),
        p99_jct=float(p99),
        makespan=float(outcome.finish.max()),
        utilisation=float((jobs.gpus * outcome.busy).sum()) / (span * outcome.cluster.gpus),
        throughput=jobs.n_jobs / span,
        mean_rho=float(rho.mean()),
        worst_rho=float(rho.max()),
        rounds=len(outcome.begins),
        allocations=outcome.allocations,
        leases=len(outcome.lease_job),
    )


def finish_time_fairness(outcome: RoundOutcome) -> FloatArray:
    r"""Return each job's completion time over that on its own part of the cluster, float64 (n,).

    The part is 1/N of each type's GPUs, N the mean number of jobs there were from its submission to its end (Mahajan
    et al., NSDI 2020, section 3.1), at most all of its time.
    """
    jobs, first = outcome.jobs, outcome.jobs.submit.min()
    submit, finish = jobs.submit - first, outcome.finish - first  # sums of Unix times would lose digits
    # the integral of how many jobs there are up to t: sum of max(0, t - submit) - max(0, t - finish)
    present = _integral(submit, finish) - _integral(finish, finish)
    present -= _integral(submit, submit) - _integral(finish, submit)
    others = np.maximum(1.0, present / (finish - submit))
    share = np.array(outcome.cluster.count) / others[:, None] / jobs.gpus[:, None]
    share /= np.maximum(1.0, share.sum(axis=1))[:, None]
    rho: FloatArray = (finish - submit) * (share * jobs.speed).sum(axis=1) / jobs.steps
    return rho


def _integral(events: FloatArray, times: FloatArray) -> FloatArray:
    """Return the sum over events of max(0, time - event) for each time."""
    ordered = np.sort(events)
    count = np.searchsorted(ordered, times, side="right")
    result: FloatArray = count * times - np.concatenate([[0.0], np.cumsum(ordered)])[count]
    return result
