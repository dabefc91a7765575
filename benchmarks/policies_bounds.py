"""What no schedule of a trace beats, also where jobs choose their degree or GPUs are of several types."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload
from gangplan.simulator.options import DegreeOptions
from gangplan.simulator.rounds import RoundJobs, RoundsCluster
from gangplan.solvers.schedule.clairvoyant import clairvoyant
from gangplan.solvers.schedule.workload_bounds import makespan_bound, mean_jct_bound

_UNIT = 1_000_000
_STEPS = 20
_LP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least mean JCT and makespan, seconds; `unstopped` is the mean if jobs are neither stopped nor shared."""

    mean_jct: float
    makespan: float
    unstopped: float | None = None


def rigid(workload: Workload, gpus: int) -> Bounds:
    """Bound schedules in which a job holds what it asks for, in one go or in parts, and never runs faster than alone.

    GPUs may be shared: shares count as so much less work, and jobs squeezed onto a GPU get no more than it gives.
    """
    return Bounds(mean_jct_bound(workload, gpus), makespan_bound(workload, gpus))


def unstopped(workload: Workload, gpus: int) -> Bounds:
    """Bound the same, and by the time-indexed LP schedules in which a job once started holds its GPUs to its end."""
    found = rigid(workload, gpus)
    return Bounds(found.mean_jct, found.makespan, clairvoyant(workload, gpus, time_limit=_LP_SECONDS).bound)


def elastic(workload: Workload, options: DegreeOptions, gpus: int) -> Bounds:
    """Bound schedules in which degrees may change at any time: least seconds and least work, each at its own degree."""
    starts = options.first[:-1]
    seconds = np.minimum.reduceat(options.duration, starts)
    work = np.minimum.reduceat(options.duration * options.gpus, starts)
    return rigid(_relaxed(np.asarray(workload.submit), seconds, work / gpus), _UNIT)


def typed(jobs: RoundJobs, cluster: RoundsCluster) -> Bounds:
    r"""Bound schedules on GPUs of several types, among which jobs may move at any time.

    For any prices $y_k \ge 0$ with $\sum_k y_k G_k = 1$, $G_k$ the GPUs of type k, a job does no part x of itself on
    less than $x \min_k y_k g_j d_{jk}$ of the cluster's time: that is its work on one machine of speed 1. The best of
    a grid of prices is taken.
    """
    with np.errstate(divide="ignore"):
        seconds = jobs.steps[:, None] / jobs.speed
    least, found = seconds.min(axis=1), Bounds(0.0, 0.0)
    for part in itertools.product(range(_STEPS + 1), repeat=len(cluster.count)):
        if sum(part) != _STEPS or 0 in part:
            continue
        price = np.array(part) / _STEPS / np.array(cluster.count)
        one = rigid(_relaxed(jobs.submit, least, (price * seconds).min(axis=1) * jobs.gpus), _UNIT)
        found = Bounds(max(found.mean_jct, one.mean_jct), max(found.makespan, one.makespan))
    return found


def _relaxed(submit: FloatArray, seconds: FloatArray, work: FloatArray) -> Workload:
    """Return jobs of so many seconds, and of so much work on one machine: a cluster of `_UNIT` GPUs."""
    held = np.divide(work * _UNIT, seconds, out=np.full(len(work), 0.5), where=seconds > 0)
    whole = np.maximum(1, np.ceil(held))
    return Workload(tuple(map(str, range(len(work)))), submit, whole.astype(np.int32), seconds, share=held / whole)
