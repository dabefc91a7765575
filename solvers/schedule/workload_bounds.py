"""Bound what any policy reaches on a trace, in O(n log n)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.workload import Workload

from .run_kernels import flows


def mean_jct_bound(workload: Workload, gpus: int) -> float:
    """Return the largest of three relaxations of the mean completion less submission, seconds.

    Each job alone. All work squashed on one preemptive machine as fast as all GPUs together, by shortest remaining time
    (Schrage 1968). On the same machine the least sum of mean busy times, which a job's completion exceeds by half its
    duration (Goemans 1996). A job that holds a share of its GPUs counts as so much less work.
    """
    submit, duration = np.asarray(workload.submit), np.asarray(workload.duration)
    work = duration * workload.gpus * np.asarray(workload.share) / gpus
    order, gain, n = np.argsort(submit, kind="stable"), np.ones(len(work)), len(work)
    ended, busy = flows(submit, work, gain, order, True)[0], flows(submit, work, gain, order, False)[1]
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
