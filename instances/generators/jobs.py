"""Jobs at random: moldable ones as a schedule problem, and a workload of arrivals to simulate."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, require_choice, require_counts, require_number, require_share
from ..cluster import RampTopology
from ..errors import InstanceError
from ..schedule import Capacity, MoldableJob, NodePool, Pool, ScheduleProblem, holds, total
from ..workload import Workload

_MEDIAN, _SPREAD, _LONGEST = 2 * 3600.0, 1.2, 2 * 86400.0
"""Seconds of a job on one GPU: log-normal, as those of the traces of Philly and Helios roughly are, cut off above."""
_OVERHEAD = (0.02, 0.2)
"""Of each further GPU, as a share of the work: from a compute-bound model to one bound by its all-reduce."""
_HEAVIEST = 10
"""Weights are whole numbers up to this."""


def moldable(
    jobs: Annotated[int, "how many"] = 20,
    nodes: Annotated[int, "of the cluster"] = 4,
    gpus: Annotated[int, "of a node"] = 8,
    load: Annotated[
        float,
        "work of a job on one GPU, over what the cluster does between two arrivals; they are Poisson. 0 means "
        "that all jobs are there at time 0",
    ] = 1.0,
    seed: Annotated[int, "of the random choices"] = 0,
    *,
    capacity: Annotated[
        str,
        "pool (GPUs are counted), nodes (jobs are consolidated) or ramp (blocks of a RAMP cluster of as many "
        "communication groups as nodes, two racks and half as many servers per rack as GPUs)",
    ] = "pool",
    goal: Annotated[
        str, "of the problem; the horizon of throughput is when the last job arrives, or half the time that all need"
    ] = "weighted_completion",
    grain: Annotated[float, "seconds that all times are multiples of: the scheduler acts at whole rounds"] = 60.0,
    fraction: Annotated[
        float,
        "maximum acceptable completion time as a fraction of the time on one GPU, drawn evenly up to this from "
        "half of it; 0 means that there are no deadlines",
    ] = 0.0,
    optional: Annotated[
        float, "share of the jobs that may be left out, at about their weight times a tenth of the median job"
    ] = 0.0,
    rigid: Annotated[float, "share of the jobs with one degree"] = 0.0,
) -> ScheduleProblem:
    """Make moldable jobs and a cluster, the same for the same arguments.

    The degrees of a job are the powers of two up to a largest; on d GPUs it runs (1 + c (d - 1)) / d times as long
    as on one, its overhead c drawn evenly from 0.02 to 0.2, rounded up to whole grains.
    """
    require_counts(jobs=jobs, nodes=nodes, gpus=gpus)
    require_number(grain, "grain", positive=True)
    require_number(load, "load")
    require_number(fraction, "fraction")
    require_share(optional, "optional")
    require_share(rigid, "rigid")
    rng = np.random.default_rng(seed)
    cluster = _capacity(capacity, nodes, gpus)
    most = total(cluster)
    work = np.minimum(rng.lognormal(np.log(_MEDIAN), _SPREAD, jobs), _LONGEST)
    gap = work.mean() / (load * most) if load else 0.0
    arrival = np.floor(np.cumsum(rng.exponential(1.0, jobs)) * gap / grain) * grain
    arrival -= arrival[0]

    def job(name: str, work: float, release: float) -> MoldableJob:
        menu = _menu(rng, work, cluster, grain)
        if rng.random() < rigid:
            menu = [menu[int(rng.integers(len(menu)))]]
        weight, patience = float(rng.integers(1, _HEAVIEST + 1)), float(rng.uniform(0.5, 1.0))
        value = weight * round(_MEDIAN / 10) if rng.random() < optional else None
        due = release + ceil(patience * fraction * work / grain) * grain if fraction else None
        degrees, seconds = zip(*menu, strict=True)
        return MoldableJob(name, degrees, seconds, release, weight, due, value)

    made = [job(f"job{i}", *both) for i, both in enumerate(zip(work.tolist(), arrival.tolist(), strict=True))]
    horizon = None
    if goal == "throughput":
        horizon = float(arrival[-1]) or ceil(work.sum() / most / 2 / grain) * grain
    return ScheduleProblem(tuple(made), cluster, goal, horizon)


def _capacity(name: str, nodes: int, gpus: int) -> Capacity:
    require_choice(name, "capacity", ("pool", "nodes", "ramp"))
    if name == "ramp" and gpus % 2:
        raise InstanceError("gpus", f"{gpus!r} is odd: a RAMP cluster here has two racks")
    if name == "ramp":
        return RampTopology(nodes, 2, gpus // 2)
    return Pool(nodes * gpus) if name == "pool" else NodePool(nodes, gpus)


def _menu(rng: np.random.Generator, work: float, cluster: Capacity, grain: float) -> list[tuple[int, float]]:
    """Return degrees, powers of two up to a largest, and the seconds with each, of those that are of use."""
    overhead = float(rng.uniform(*_OVERHEAD))
    largest = int(rng.choice([1, 2, 4, 4, 8, 8, 16, 32]))
    menu: list[tuple[int, float]] = []
    degree = 1
    while degree <= largest and holds(cluster, degree):
        seconds = ceil(work * (1 + overhead * (degree - 1)) / degree / grain) * grain
        if not menu or seconds < menu[-1][1]:
            menu.append((degree, seconds))
        degree *= 2
    return menu


DAY = 86400.0


def arrivals(
    jobs: Annotated[int, "how many"] = 1000,
    rate: Annotated[float, "jobs a second in the long run"] = 0.01,
    seed: Annotated[int, "of the random choices"] = 0,
    *,
    process: Annotated[
        str,
        "``poisson``; ``burst`` (bursts come by a Poisson process, each of a geometric number of jobs at one "
        "instant); or ``diurnal`` (Poisson, the rate a sine over the day, by thinning: Lewis and Shedler 1979)",
    ] = "poisson",
    burst: Annotated[float, "mean number of jobs of a burst"] = 8.0,
    swing: Annotated[float, "of the diurnal rate, as a share of its mean, up to 1"] = 0.8,
    gpus: Annotated[str, "numbers of GPUs and their weights: ``1:6,2:2,8:1``"] = "1:1",
    duration: Annotated[
        str, "``exponential``, ``fixed``, ``uniform`` (from 0 to twice the mean) or ``lognormal``"
    ] = "exponential",
    mean: Annotated[float, "seconds of a job on average"] = 3600.0,
    spread: Annotated[float, "of the logarithm of log-normal durations"] = 1.5,
) -> Workload:
    """Make a workload, the same for the same arguments."""
    require_counts(jobs=jobs)
    require_number(seed, "seed", whole=True)
    for field, value in (("rate", rate), ("mean", mean)):
        require_number(value, field, positive=True)
    require_number(spread, "spread")
    require_number(burst, "burst")
    require_share(swing, "swing")
    if burst < 1:
        raise InstanceError("burst", f"{burst!r} is less than 1")
    require_choice(process, "process", PROCESSES)
    require_choice(duration, "duration", DURATIONS)
    sizes, weights = sized(gpus, "gpus")
    rng = np.random.default_rng(seed)
    submit = PROCESSES[process](rng, jobs, rate, burst, swing)
    return Workload(
        names=tuple(map(str, range(jobs))),
        submit=submit,
        gpus=rng.choice(sizes, size=jobs, p=weights).astype(np.int32),
        duration=DURATIONS[duration](rng, jobs, mean, spread),
    )


def _bursts(rng: np.random.Generator, jobs: int, rate: float, burst: float, swing: float) -> FloatArray:
    size = rng.geometric(1 / burst, jobs)
    begin = np.cumsum(rng.exponential(burst / rate, jobs))
    return np.repeat(begin, size)[:jobs]


def _diurnal(rng: np.random.Generator, jobs: int, rate: float, burst: float, swing: float) -> FloatArray:
    kept = np.zeros(0)
    last = 0.0
    while len(kept) < jobs:
        # as many as arrive at the highest rate; of these each stays with the share that the rate at its time has
        offered = last + np.cumsum(rng.exponential(1 / (rate * (1 + swing)), jobs))
        last = float(offered[-1])
        chance = (1 + swing * np.sin(2 * np.pi * offered / DAY)) / (1 + swing)
        kept = np.concatenate([kept, offered[rng.random(jobs) < chance]])
    return kept[:jobs]


PROCESSES: dict[str, Callable[[np.random.Generator, int, float, float, float], FloatArray]] = {
    "poisson": lambda rng, jobs, rate, burst, swing: np.cumsum(rng.exponential(1 / rate, jobs)),
    "burst": _bursts,
    "diurnal": _diurnal,
}
"""By name: times of arrival, ascending, float64 (jobs,)."""
DURATIONS: dict[str, Callable[[np.random.Generator, int, float, float], FloatArray]] = {
    "exponential": lambda rng, jobs, mean, spread: rng.exponential(mean, jobs),
    "fixed": lambda rng, jobs, mean, spread: np.full(jobs, mean),
    "uniform": lambda rng, jobs, mean, spread: rng.uniform(0, 2 * mean, jobs),
    "lognormal": lambda rng, jobs, mean, spread: rng.lognormal(np.log(mean) - spread**2 / 2, spread, jobs),
}
"""By name: seconds, float64 (jobs,)."""


def sized(text: str, field: str) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the numbers of GPUs and their probabilities that ``1:6,2:2,8:1`` says."""
    try:
        pairs = [(int(size), float(weight)) for size, weight in (part.split(":") for part in text.split(","))]
    except ValueError:
        raise InstanceError(field, f"{text!r} is not like 1:6,2:2,8:1") from None
    sizes, weights = np.array([s for s, _ in pairs]), np.array([w for _, w in pairs])
    if (sizes < 1).any() or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum():
        raise InstanceError(field, f"{text!r} has a size or a weight that is none")
    return sizes, weights / weights.sum()
