"""Bounds in closed form: each job alone, all work on all GPUs, work squashed on one fast machine."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from gangplan.instances.arrays import FloatArray

from .prepare import PreparedJobs
from .run_kernels import flows


def bound(p: PreparedJobs) -> tuple[float, str]:
    """Return the best bound in closed form, and its name; jobs without an option are left out."""
    found = {"each job alone": alone(p), "all work": area(p) if p.makespan else squashed(p)}
    name = max(found, key=lambda x: found[x])
    return found[name], name


def alone(p: PreparedJobs) -> float:
    """Return the goal if every job had the cluster to itself."""
    if p.makespan:
        return p.constant + best_end(p, 0.0)[1]
    return p.constant + float(_cheapest(p, p.release + p.least(p.seconds, np.inf)).sum())


def best_end(p: PreparedJobs, least: float) -> tuple[float, float]:
    """Return (end, goal) of the best end of all jobs from `least` on, each with the cluster to itself or left out."""
    finish, must = p.release + p.least(p.seconds, np.inf), ~np.isfinite(p.price)
    least = max(least, float(finish[must].max(initial=0.0)))
    later = np.flatnonzero(~must & (finish > least))
    later = later[np.argsort(finish[later])]
    ends = np.append(least, finish[later])
    goals = ends + np.append(np.cumsum(p.price[later][::-1])[::-1], 0.0)
    best = int(np.argmin(goals))
    return float(ends[best]), float(goals[best])


def least_work(p: PreparedJobs) -> FloatArray:
    """Return the fewest GPU-seconds each job runs with, 0 if it cannot run, float64 (n,)."""
    return p.least(p.gpus * p.seconds)


def area(p: PreparedJobs) -> float:
    """Return what the makespan is at least: after any release, all later work on all GPUs, or its price.

    A job works the fewest GPU-seconds with which it can end by then: the bound is the least end for which that fits.
    """
    order = np.argsort(-p.release, kind="stable")
    # if all of these may be left out, nothing need run after their releases
    must = np.logical_or.accumulate(~np.isfinite(p.price[order]))
    release, ends = np.where(must, p.release[order], 0.0), p.release[p.owner] + p.seconds

    def needed(end: float) -> float:
        # a job that may be left out adds the less of both
        work = p.least(np.where(ends <= end, p.gpus * p.seconds / p.total, np.inf), np.inf)
        return float((release + np.cumsum(np.minimum(work, p.price)[order])).max())

    # it changes at these ends only
    at = [0.0, *np.unique(ends).tolist(), np.inf]
    k = bisect_left(range(len(at)), True, key=lambda k: needed(at[k]) <= at[k])
    return p.constant + (min(at[k], needed(at[k - 1])) if k else 0.0)


def squashed(p: PreparedJobs) -> float:
    """Return the preemptive relaxation on one machine as fast as all GPUs together, plus half of each job's run.

    With M_j the mean time at which job j's work is done, its completion is at least M_j + p_j / 2. On one machine the
    sum of slope times M_j is least if whoever has most slope a work goes first, preempting (Goemans 1996; Eastman,
    Even and Isaacs 1964 without releases). Only for jobs that must run; the others count alone.
    """
    must = ~np.isfinite(p.price)
    others = _cheapest(p, p.release + p.least(p.seconds, np.inf))[~must].sum()
    jobs = np.flatnonzero(must & (p.slope > 0))
    release, slope = p.release[jobs], p.slope[jobs]
    work = (least_work(p) / p.total)[jobs]
    _, busy = flows(release, work, slope, np.argsort(release, kind="stable"), False)
    return float(p.constant + slope @ release + others + slope @ p.least(p.seconds)[jobs] / 2 + busy)


def _cheapest(p: PreparedJobs, finish: FloatArray) -> FloatArray:
    runs = np.isfinite(finish)
    cost = np.full(p.n, np.inf)
    cost[runs] = (p.slope * np.where(runs, finish, 0.0))[runs]
    return np.asarray(np.minimum(cost, p.price))
