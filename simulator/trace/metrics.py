"""Figures of a simulated trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .outcome import Outcome


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures in seconds, or shares from 0 to 1.

    Attributes:
        jobs: how many ran.
        mean_jct, median_jct, p95_jct, p99_jct: of finish - submit.
        mean_wait: of start - submit.
        makespan: the last finish.
        utilisation: GPU seconds used over those there were from the first submission to the last finish.
        throughput: jobs a second over that time.
        mean_slowdown: of the completion time over the duration, jobs of no duration left out.
    """

    jobs: int
    mean_jct: float
    median_jct: float
    p95_jct: float
    p99_jct: float
    mean_wait: float
    makespan: float
    utilisation: float
    throughput: float
    mean_slowdown: float


def summary(outcome: Outcome) -> Metrics:
    """Return the figures of `outcome`."""
    work = outcome.workload
    jct = outcome.finish - work.submit
    span = float(outcome.finish.max() - work.submit.min())
    used = float((work.gpus * work.duration).sum())
    runs = work.duration > 0
    p50, p95, p99 = np.quantile(jct, [0.5, 0.95, 0.99])
    return Metrics(
        jobs=work.n_jobs,
        mean_jct=float(jct.mean()),
        median_jct=float(p50),
        p95_jct=float(p95),
        p99_jct=float(p99),
        mean_wait=float((outcome.start - work.submit).mean()),
        makespan=float(outcome.finish.max()),
        utilisation=used / (span * outcome.nodes * outcome.gpus) if span > 0 else 0.0,
        throughput=work.n_jobs / span if span > 0 else float("inf"),
        mean_slowdown=float((jct[runs] / work.duration[runs]).mean()) if runs.any() else 1.0,
    )
