"""Synthetic workloads that look like a given trace, from a model small enough to share where the trace is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..arrays import AMOUNT, FloatArray, IntArray, array, check_fields, limited, require_number
from ..errors import InstanceError
from ..workload import Workload

_HOUR = 3600.0
_HOURS = 24
_DAY = _HOUR * _HOURS
LEVELS = np.concatenate([np.arange(100) / 100, [0.995, 0.9975, 0.999, 0.9995, 0.9999, 1.0]])
"""Quantiles of durations: a few jobs do much of the work, so the tail is kept finer."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadModel:
    """What is kept of a trace; nothing in it belongs to a single job, except the extremes of the durations.

    Attributes:
        rate: arrivals a second in each hour of the day, float64 (24,), the trace's first submission being hour 0.
        swing: the variance of the days' rates over the square of their mean, beyond chance; days are gamma distributed.
        burst: how many jobs arrive at one time on average, at least 1; their number is geometric.
        sizes: the numbers of GPUs that jobs ask for, ascending, int32 (S,).
        shares: how many of the jobs ask for each, float64 (S,), adding up to 1.
        quantiles: of the durations of the jobs of each size in seconds, at `LEVELS`, float64 (S, 106).
        stays: how likely a job is of the same size as the one before it, beyond chance, from 0 to 1: people submit
            the same job many times.
        alike: the same for its duration among those of its size: their rank correlation.
    """

    rate: FloatArray = field(metadata=array(None, holds=AMOUNT))
    swing: float
    burst: float = field(metadata={"least": 1})
    sizes: IntArray
    shares: FloatArray = field(metadata=array("sizes", holds=AMOUNT))
    quantiles: FloatArray = field(metadata=array("sizes", None, holds=AMOUNT))
    stays: float = limited(0.0, most=1)
    alike: float = limited(0.0, most=1)

    def __post_init__(self) -> None:
        check_fields(self)
        for name, values, width in (("rate", self.rate, _HOURS), ("quantiles", self.quantiles, len(LEVELS))):
            if values.shape[-1] != width:
                raise InstanceError(name, f"has {values.shape[-1]} entries where {width} are expected")
        if not self.rate.any():
            raise InstanceError("rate", "nothing ever arrives")
        if abs(float(self.shares.sum()) - 1) > 1e-6:
            raise InstanceError("shares", f"add up to {self.shares.sum():.6g}, not to 1")

    def draw(self, jobs: int, seed: int = 0, load: float = 1.0) -> Workload:
        """Make a workload.

        Args:
            jobs: how many.
            seed: of the random choices.
            load: arrivals come this many times as fast.
        """
        require_number(jobs, "jobs", positive=True, whole=True)
        require_number(load, "load", positive=True)
        rng = np.random.default_rng(seed)
        submit = self._arrivals(rng, jobs) / load
        kind = rng.choice(len(self.shares), jobs, p=self.shares)[_repeated(rng, jobs, self.stays)]
        # between quantiles durations are interpolated by their logarithms: they span six orders of magnitude
        log, duration = np.log1p(self.quantiles), np.zeros(jobs)
        for s in range(len(self.sizes)):
            of_size = np.flatnonzero(kind == s)
            level = rng.random(len(of_size))[_repeated(rng, len(of_size), self.alike)]
            duration[of_size] = np.expm1(np.interp(level, LEVELS, log[s]))
        return Workload(tuple(map(str, range(jobs))), submit, self.sizes[kind], duration)

    def _arrivals(self, rng: np.random.Generator, jobs: int) -> FloatArray:
        """Draw bursts from a Poisson process whose rate changes with day and hour (by inverting its integral)."""
        bursts = rng.geometric(1 / self.burst, jobs)
        upto = int(np.searchsorted(np.cumsum(bursts), jobs)) + 1
        due = np.cumsum(rng.exponential(1.0, upto)) * self.burst
        due -= due[0]
        day = self.rate * _HOUR
        rates: list[FloatArray] = []
        while sum(float(part.sum()) for part in rates) <= due[-1]:
            rates.append(day * (rng.gamma(1 / self.swing, self.swing) if self.swing else 1.0))
        integral = np.concatenate([[0.0], np.cumsum(np.concatenate(rates))])
        clock = np.interp(due, integral, np.arange(len(integral)) * _HOUR)
        return np.asarray(np.repeat(clock, bursts[:upto])[:jobs])


def _repeated(rng: np.random.Generator, jobs: int, chance: float) -> IntArray:
    """Return for each job which one it takes after: itself, or with that probability the one before it."""
    fresh = rng.random(jobs) >= chance
    fresh[:1] = True
    return np.asarray(np.maximum.accumulate(np.where(fresh, np.arange(jobs), 0)), dtype=np.int32)


def fit_workload(workload: Workload) -> WorkloadModel:
    """Fit a model to a trace: rates by hour of the day, bursts, sizes, and durations by size.

    Raises:
        InstanceError: if all jobs arrive at once.
    """
    order = np.argsort(workload.submit, kind="stable")
    submit, gpus = workload.submit[order], workload.gpus[order]
    span = float(submit[-1] - submit[0])
    if span <= 0:
        raise InstanceError("submit", f"all {workload.n_jobs} jobs arrive at once: there is no rate to fit")
    since = submit - submit[0]
    hour = (since // _HOUR).astype(int) % _HOURS
    count = np.bincount(hour, minlength=_HOURS).astype(float)
    whole, rest = divmod(span, _DAY)
    seconds = whole * _HOUR + np.clip(rest - np.arange(_HOURS) * _HOUR, 0, _HOUR)
    rate = np.where(seconds > 0, count / np.maximum(seconds, 1.0), 0.0)
    sizes, kind, amount = np.unique(gpus, return_inverse=True, return_counts=True)
    shares = amount / len(gpus)
    duration = workload.duration[order]
    quantiles = np.stack([np.quantile(duration[kind == s], LEVELS) for s in range(len(sizes))])
    same, chance = float((kind[1:] == kind[:-1]).mean()), float((shares**2).sum())
    return WorkloadModel(
        rate=rate,
        swing=_swing(since, span),
        burst=len(gpus) / len(np.unique(submit)),
        sizes=sizes,
        shares=shares,
        quantiles=quantiles,
        stays=max(0.0, (same - chance) / (1 - chance)) if chance < 1 else 0.0,
        alike=_alike(duration, kind),
    )


def _swing(since: FloatArray, span: float) -> float:
    """Return the dispersion of the counts of whole days beyond a Poisson's."""
    days = np.bincount((since // _DAY).astype(int))[: int(span // _DAY)]
    if len(days) < 2:
        return 0.0
    mean = float(days.mean())
    return max(0.0, (float(days.var(ddof=1)) - mean) / mean**2)


def _alike(duration: FloatArray, kind: NDArray[np.intp]) -> float:
    """Return the rank correlation of successive durations of one size."""
    before, after = [], []
    for s in range(int(kind.max()) + 1):
        rank = np.argsort(np.argsort(duration[kind == s], kind="stable"), kind="stable") / max(1, (kind == s).sum() - 1)
        before.append(rank[:-1])
        after.append(rank[1:])
    x, y = np.concatenate(before), np.concatenate(after)
    if len(x) < 2 or not x.std() or not y.std():
        return 0.0
    return float(np.clip(np.corrcoef(x, y)[0, 1], 0.0, 1.0))
