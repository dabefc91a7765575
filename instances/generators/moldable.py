"""Moldable jobs that arrive over time: many small and few large, each faster on more GPUs but never in proportion."""

from __future__ import annotations

from math import ceil

import numpy as np

from ..arrays import require_number
from ..cluster import RampTopology
from ..errors import InstanceError
from ..schedule import Capacity, MoldableJob, NodePool, Pool, ScheduleProblem, holds, total

_MEDIAN, _SPREAD, _LONGEST = 2 * 3600.0, 1.2, 2 * 86400.0
"""Seconds of a job on one GPU: log-normal, as those of the traces of Philly and Helios roughly are, cut off above."""
_OVERHEAD = (0.02, 0.2)
"""Of each further GPU, as a share of the work: from a compute-bound model to one bound by its all-reduce."""
_HEAVIEST = 10
"""Weights are whole numbers up to this."""


def moldable(
    jobs: int = 20,
    nodes: int = 4,
    gpus: int = 8,
    load: float = 1.0,
    seed: int = 0,
    *,
    capacity: str = "pool",
    goal: str = "weighted_completion",
    grain: float = 60.0,
    fraction: float = 0.0,
    optional: float = 0.0,
    rigid: float = 0.0,
) -> ScheduleProblem:
    """Make moldable jobs and a cluster, the same for the same arguments.

    The menu of a job is the powers of two up to a largest degree; on d GPUs it runs (1 + c (d - 1)) / d times as long
    as on one, its overhead c drawn evenly from 0.02 to 0.2, rounded up to whole grains.

    Args:
        jobs: how many.
        nodes: of the cluster.
        gpus: of a node.
        load: work of a job on one GPU, over what the cluster does between two arrivals; they are Poisson. 0 means that
            all jobs are there at time 0.
        seed: of the random choices.
        capacity: pool (GPUs are counted), nodes (jobs are consolidated) or ramp (blocks of a RAMP cluster of as many
            communication groups as nodes, two racks and half as many servers per rack as GPUs).
        goal: of the problem; the horizon of throughput is when the last job arrives, or half the time that all need.
        grain: seconds that all times are multiples of: the scheduler acts at whole rounds.
        fraction: maximum acceptable completion time as a fraction of the time on one GPU, drawn evenly up to this
            from half of it; 0 means that there are no deadlines.
        optional: share of the jobs that may be left out, at about their weight times a tenth of the median job.
        rigid: share of the jobs with one degree.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    for name, count in (("jobs", jobs), ("nodes", nodes), ("gpus", gpus)):
        require_number(count, name, positive=True, whole=True)
    require_number(grain, "grain", positive=True)
    for name, number in (("load", load), ("fraction", fraction), ("optional", optional), ("rigid", rigid)):
        require_number(number, name)
        if name in ("optional", "rigid") and number > 1:
            raise InstanceError(name, f"{number!r} is more than 1")
    rng = np.random.default_rng(seed)
    cluster = _capacity(capacity, nodes, gpus)
    most = total(cluster)
    work = np.minimum(rng.lognormal(np.log(_MEDIAN), _SPREAD, jobs), _LONGEST)
    gap = work.mean() / (load * most) if load else 0.0
    arrival = np.floor(np.cumsum(rng.exponential(1.0, jobs)) * gap / grain) * grain
    arrival -= arrival[0]
    made = [
        _job(rng, i, float(work[i]), float(arrival[i]), cluster, grain, fraction, optional, rigid) for i in range(jobs)
    ]
    horizon = None
    if goal == "throughput":
        horizon = float(arrival[-1]) or ceil(work.sum() / most / 2 / grain) * grain
    return ScheduleProblem(tuple(made), cluster, goal, horizon)


def _capacity(name: str, nodes: int, gpus: int) -> Capacity:
    if name == "pool":
        return Pool(nodes * gpus)
    if name == "nodes":
        return NodePool(nodes, gpus)
    if name == "ramp":
        if gpus % 2:
            raise InstanceError("gpus", f"{gpus!r} is odd: a RAMP cluster here has two racks")
        return RampTopology(nodes, 2, gpus // 2)
    raise InstanceError("capacity", f"{name!r} is not one of pool, nodes, ramp")


def _job(
    rng: np.random.Generator,
    i: int,
    work: float,
    release: float,
    cluster: Capacity,
    grain: float,
    fraction: float,
    optional: float,
    rigid: float,
) -> MoldableJob:
    overhead = float(rng.uniform(*_OVERHEAD))
    largest = int(rng.choice([1, 2, 4, 4, 8, 8, 16, 32]))
    menu: list[tuple[int, float]] = []
    degree = 1
    while degree <= largest and holds(cluster, degree):
        seconds = ceil(work * (1 + overhead * (degree - 1)) / degree / grain) * grain
        if not menu or seconds < menu[-1][1]:
            menu.append((degree, seconds))
        degree *= 2
    if rng.random() < rigid:
        menu = [menu[int(rng.integers(len(menu)))]]
    weight, patience, may = float(rng.integers(1, _HEAVIEST + 1)), float(rng.uniform(0.5, 1.0)), rng.random() < optional
    return MoldableJob(
        f"job{i}",
        tuple(d for d, _ in menu),
        tuple(p for _, p in menu),
        release,
        weight,
        release + ceil(patience * fraction * work / grain) * grain if fraction else None,
        weight * round(_MEDIAN / 10) if may else None,
    )
