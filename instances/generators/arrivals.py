"""Workloads whose jobs arrive by a process: at random, in bursts, or by the hour of the day."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, require_number
from ..errors import InstanceError, unknown
from ..workload import Workload

DAY = 86400.0


def arrivals(
    jobs: int = 1000,
    rate: float = 0.01,
    seed: int = 0,
    *,
    process: str = "poisson",
    burst: float = 8.0,
    swing: float = 0.8,
    gpus: str = "1:1",
    duration: str = "exponential",
    mean: float = 3600.0,
    spread: float = 1.5,
) -> Workload:
    """Make a workload, the same for the same arguments.

    Args:
        jobs: how many.
        rate: jobs a second in the long run.
        seed: of the random choices.
        process: ``poisson``; ``burst`` (bursts come by a Poisson process, each of a geometric number of jobs at one
            instant); or ``diurnal`` (Poisson, the rate a sine over the day, by thinning: Lewis and Shedler 1979).
        burst: mean number of jobs of a burst.
        swing: of the diurnal rate, as a share of its mean, up to 1.
        gpus: numbers of GPUs and their weights: ``1:6,2:2,8:1``.
        duration: ``exponential``, ``fixed``, ``uniform`` (from 0 to twice the mean) or ``lognormal``.
        mean: seconds of a job on average.
        spread: of the logarithm of log-normal durations.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(jobs, "jobs", positive=True, whole=True)
    require_number(seed, "seed", whole=True)
    for field, value in (("rate", rate), ("mean", mean)):
        require_number(value, field, positive=True)
    require_number(spread, "spread")
    require_number(burst, "burst")
    require_number(swing, "swing")
    if burst < 1:
        raise InstanceError("burst", f"{burst!r} is less than 1")
    if swing > 1:
        raise InstanceError("swing", f"{swing!r} is more than 1")
    for field, name, known in (("process", process, PROCESSES), ("duration", duration, DURATIONS)):
        if name not in known:
            raise InstanceError(field, unknown(name, known))
    sizes, weights = _menu(gpus)
    rng = np.random.default_rng(seed)
    submit = PROCESSES[process](rng, jobs, rate, burst, swing)
    return Workload(
        names=tuple(map(str, range(jobs))),
        submit=submit,
        gpus=rng.choice(sizes, size=jobs, p=weights).astype(np.int32),
        duration=DURATIONS[duration](rng, jobs, mean, spread),
    )


def _poisson(rng: np.random.Generator, jobs: int, rate: float, burst: float, swing: float) -> FloatArray:
    return np.asarray(np.cumsum(rng.exponential(1 / rate, jobs)))


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
    "poisson": _poisson,
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


def _menu(text: str) -> tuple[NDArray[np.int64], FloatArray]:
    """Return numbers of GPUs and their probabilities."""
    try:
        pairs = [(int(size), float(weight)) for size, weight in (part.split(":") for part in text.split(","))]
    except ValueError:
        raise InstanceError("gpus", f"{text!r} is not like 1:6,2:2,8:1") from None
    sizes, weights = np.array([s for s, _ in pairs]), np.array([w for _, w in pairs])
    if (sizes < 1).any() or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum():
        raise InstanceError("gpus", f"{text!r} has a size or a weight that is none")
    return sizes, weights / weights.sum()
