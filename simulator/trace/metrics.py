"""Figures of a simulated trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .outcome import Outcome
from .spans import spans


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures in seconds, or shares from 0 to 1.

    Attributes:
        jobs: how many ran.
        blocking_rate: the share of all jobs that were rejected.
        mean_jct, median_jct, p95_jct, p99_jct: of finish - submit.
        mean_wait: of start - submit.
        makespan: the last finish.
        utilisation: GPU seconds held over those there were from the first submission to the last finish.
        throughput: jobs a second over that time.
        mean_slowdown: of the completion time over the duration, jobs of no duration left out.
        interruptions: how often a job was stopped before its end, a job.
    """

    jobs: int
    blocking_rate: float
    mean_jct: float
    median_jct: float
    p95_jct: float
    p99_jct: float
    mean_wait: float
    makespan: float
    utilisation: float
    throughput: float
    mean_slowdown: float
    interruptions: float


def summary(outcome: Outcome) -> Metrics:
    """Return the figures of `outcome`; of no job, if all were rejected, they are 0."""
    work, ran = outcome.workload, outcome.admitted
    jobs = int(np.count_nonzero(ran))
    if not jobs:
        return Metrics(0, 1.0, *[0.0] * 10)
    submit, finish, duration = work.submit[ran], outcome.finish[ran], work.duration[ran]
    jct = finish - submit
    span = float(finish.max() - work.submit.min())
    held = outcome.row_gpus * outcome.row_share * (outcome.row_end - outcome.row_start)
    runs = duration > 0
    p50, p95, p99 = np.quantile(jct, [0.5, 0.95, 0.99])
    return Metrics(
        jobs=jobs,
        blocking_rate=1 - jobs / work.n_jobs,
        mean_jct=float(jct.mean()),
        median_jct=float(p50),
        p95_jct=float(p95),
        p99_jct=float(p99),
        mean_wait=float((outcome.start[ran] - submit).mean()),
        makespan=float(finish.max()),
        utilisation=float(held.sum()) / (span * outcome.n_gpus) if span > 0 else 0.0,
        throughput=jobs / span if span > 0 else float("inf"),
        mean_slowdown=float((jct[runs] / duration[runs]).mean()) if runs.any() else 1.0,
        interruptions=(int(spans(outcome).opens.sum()) - jobs) / jobs,
    )
