"""Bounds in closed form: each job alone, all work on all GPUs, work squashed on one fast machine."""

from __future__ import annotations

import heapq

import numpy as np

from gangplan.instances.arrays import FloatArray

from .prepare import Prepared


def bound(p: Prepared) -> tuple[float, str]:
    """Return the best bound in closed form, and its name; jobs without an option are left out."""
    found = {"each job alone": alone(p), "all work": area(p) if p.makespan else squashed(p)}
    name = max(found, key=lambda x: found[x])
    return found[name], name


def alone(p: Prepared) -> float:
    """Return the goal if every job had the cluster to itself."""
    if p.makespan:
        finish = [p.release[j] + min((p.seconds[o] for o in p.options(j)), default=np.inf) for j in range(p.n)]
        # who is left out costs its price at least; who runs ends no earlier than so
        must = [f for f, price in zip(finish, p.price, strict=True) if not np.isfinite(price)]
        may = [float(price) for f, price in zip(finish, p.price, strict=True) if not np.isfinite(f)]
        return p.constant + max(must, default=0.0) + sum(x for x in may if np.isfinite(x))
    total = p.constant
    for j in range(p.n):
        total += min([p.price[j], *(p.slope[j] * (p.release[j] + p.seconds[o]) for o in p.options(j))])
    return float(total)


def least_work(p: Prepared) -> FloatArray:
    """Return the fewest GPU-seconds each job runs with, 0 if it cannot run, float64 (n,)."""
    work = [min((float(p.gpus[o] * p.seconds[o]) for o in p.options(j)), default=0.0) for j in range(p.n)]
    return np.array(work)


def area(p: Prepared) -> float:
    """Return what the makespan is at least: after any release, all later work on all GPUs, or its price."""
    work, best = least_work(p) / p.cluster.total, 0.0
    # a job that may be left out adds the less of both
    adds = np.minimum(work, p.price)
    for r in np.unique(p.release):
        later = p.release >= r
        # if all of these may be left out, nothing need run after r
        after = r if not np.isfinite(p.price[later]).all() else 0.0
        best = max(best, float(after + adds[later].sum()))
    return p.constant + best


def squashed(p: Prepared) -> float:
    """Return the preemptive relaxation on one machine as fast as all GPUs together, plus half of each job's run.

    With M_j the mean time at which job j's work is done, its completion is at least M_j + p_j / 2. On one machine the
    sum of slope times M_j is least if whoever has most slope a work goes first, preempting (Goemans 1996; Eastman,
    Even and Isaacs 1964 without releases). Only for jobs that must run; the others count alone.
    """
    work = least_work(p) / p.cluster.total
    must = ~np.isfinite(p.price)
    total = p.constant
    for j in np.flatnonzero(~must).tolist():
        total += min([p.price[j], *(p.slope[j] * (p.release[j] + p.seconds[o]) for o in p.options(j))])
    jobs = np.flatnonzero(must & (p.slope > 0))
    half = np.array([min((p.seconds[o] for o in p.options(int(j))), default=0.0) / 2 for j in jobs])
    return float(total + p.slope[jobs] @ half + mean_busy(p.release[jobs], work[jobs], p.slope[jobs]))


def mean_busy(release: FloatArray, work: FloatArray, slope: FloatArray) -> float:
    """Return the least sum of slope times mean busy time on one preemptive machine."""
    total, now = float(slope[work <= 0] @ release[work <= 0]), 0.0
    left = work.copy()
    waiting: list[tuple[float, int]] = []
    order = [j for j in np.argsort(release, kind="stable").tolist() if work[j] > 0]
    i = 0
    while i < len(order) or waiting:
        if not waiting:
            now = max(now, float(release[order[i]]))
        while i < len(order) and release[order[i]] <= now:
            j = order[i]
            heapq.heappush(waiting, (-float(slope[j] / work[j]), j))
            i += 1
        _, j = waiting[0]
        until = now + left[j]
        if i < len(order):
            until = min(until, float(release[order[i]]))
        done = until - now
        total += float(slope[j]) * done / float(work[j]) * (now + until) / 2
        left[j] -= done
        now = until
        if left[j] <= 1e-12 * work[j]:
            heapq.heappop(waiting)
    return total
