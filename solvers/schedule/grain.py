"""Times and costs as whole numbers, of the largest unit that all are multiples of; and how large models get by that."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor

import numpy as np

from gangplan.instances.arrays import FloatArray

from .prepare import RAMP, PreparedJobs

_PARTS = 1000
"""A common unit is looked for among so many parts of the smallest value."""
_EXACT = 1e-9
_FEW = 16
"""Values that a unit is tried on before all others."""
_TICKS, _UNITS = 1 << 32, 1 << 22
"""Ticks in the latest time, and units in the largest cost of a tick, or price, that are looked for: with more, anything
looks whole."""
_HALF_ULP = 2.0**-52
_MOST = 1 << 58
"""Units that all costs together may be: sums of products stay within 64 bits."""
LONG = 300
"""Jobs of a problem of which only few lists are tried, as they come."""
ROOM = 50_000_000
"""Jobs times nodes at most, for lists: profiles of more would not fit into memory."""
_LITERALS, _PRICED, _SEARCHED = 200_000, 20_000, 150
"""Literals of CP-SAT, jobs whose GPU-seconds are priced, and jobs whose starts are then searched over."""


def common(values: FloatArray, ticks: float) -> float:
    """Return the largest number that all `values` are multiples of, none of more than so many; 0 if none is found."""
    positive = np.unique(values[(values > 0) & np.isfinite(values)])
    if not len(positive):
        return 1.0
    least, most = float(positive[0]), float(positive[-1])
    some = np.append(positive[:: max(1, len(positive) // _FEW)], most)
    for parts in range(1, _PARTS + 1):
        if most / least * parts > ticks:
            return 0.0
        if _whole(some / (least / parts)) and _whole(positive / (least / parts)):
            return least / parts
    return 0.0


def _whole(ratio: FloatArray) -> bool:
    return bool(np.abs(ratio - np.round(ratio)).max() <= _EXACT * max(1.0, float(ratio[-1]) * 1e-3))


@lru_cache(maxsize=4)
def tick_of(p: PreparedJobs) -> tuple[float, bool]:
    """Return the seconds of a tick, and whether all durations and releases are whole ticks."""
    times = np.concatenate([p.seconds, p.release])
    unit = common(times, _TICKS)
    if unit:
        return unit, True
    return p.horizon / (_TICKS >> 2), False


class Scale:
    """Whole numbers for the times and the goal of a problem; all are rounded down, so what is proved of them holds.

    The goal is counted from what the releases cost: `constant`, and slope times the seconds that a job ends after its
    release. So its unit does not depend on when that is, nor on the tick: it is as small as 64 bits allow, or one that
    all costs are multiples of.

    Attributes:
        tick: seconds. whole: whether all durations and releases are whole ticks.
        horizon: ticks by which all jobs have run one after the other.
        unit: what 1 in the model's goal is of the real one. constant: what comes on top.
        slope: units a tick of each job, or of the last one for the makespan. price: units of leaving a job out, 0 if it
            must run.
        error: what the goal of a schedule may lose by rounding.
    """

    def __init__(self, p: PreparedJobs, most: float = np.inf) -> None:
        """Find units for a problem; of no interest are schedules whose goal is more than `most`."""
        self.tick, self.whole = tick_of(p)
        self.horizon = self.down(p.horizon) + 1
        gains = np.array([1.0]) if p.makespan else p.slope
        late = np.isfinite(p.price)
        self.constant = p.constant + float(p.slope @ p.release)
        # who leaves out a job of a higher price is no better than `most`
        price = np.where(late, np.minimum(p.price, max(0.0, most - p.constant)) - p.slope * p.release, 0.0)
        largest = float(gains.sum()) * self.tick * self.horizon + float(np.abs(price).sum())
        unit = common(np.concatenate([gains * self.tick, np.abs(price)]), _TICKS)
        exact = bool(unit) and largest <= unit * _MOST
        self.unit = unit if exact else largest / _MOST or 1.0
        rounded = round if exact else floor
        self.slope = [rounded(x) for x in (gains * (self.tick / self.unit)).tolist()]
        self.price = [rounded(x) for x in (price / self.unit).tolist()]
        lost = 0.0 if self.whole else self.tick * float(gains.sum()) * (p.n + 2)
        self.error = lost + (0.0 if exact else self.unit * (len(gains) * self.horizon + float(late.sum())))

    def down(self, seconds: float) -> int:
        """Return seconds in ticks, rounded down unless they are whole but for rounding errors."""
        if self.whole:
            return down(seconds, self.tick)
        x = seconds / self.tick
        return floor(x * (1 - _HALF_ULP))

    def up(self, seconds: float) -> int:
        """Return seconds in ticks, rounded up."""
        return self.down(seconds) + (not self.whole)


@lru_cache(maxsize=4)
def resolution(p: PreparedJobs) -> float:
    """Return what two values of the goal differ by at least in schedules without needless delay; 0 if unknown."""
    tick, whole = tick_of(p)
    values = np.concatenate([p.slope * tick, p.price[np.isfinite(p.price)], [tick] if p.makespan else []])
    return common(values, _UNITS) if whole else 0.0


def rounded_up(p: PreparedJobs, bound: float) -> float:
    """Return the least value of the goal that is no less than `bound`, if values come in steps."""
    step = resolution(p)
    if not step or not np.isfinite(bound):
        return bound
    count = (bound - p.constant) / step
    return max(bound, p.constant + ceil(count - 1e-6 - 1e-9 * abs(count)) * step)


def down(value: float, unit: float) -> int:
    """Return `value` in whole units, rounded down unless it is whole but for rounding errors."""
    x = value / unit
    return round(x) if abs(x - round(x)) <= 1e-6 else floor(x)


def suits_cpsat(p: PreparedJobs) -> bool:
    """Return whether there are few enough options on nodes, or in blocks."""
    if p.kind == RAMP:
        return int(np.bincount(p.size, minlength=p.total + 1)[p.gpus].sum()) <= _LITERALS
    return len(p.gpus) * p.nodes <= _LITERALS


def suits_dual(p: PreparedJobs) -> bool:
    """Return whether the goal is the makespan, and profiles fit into memory."""
    return p.makespan and p.n * p.nodes <= ROOM


def suits_prices(p: PreparedJobs) -> bool:
    """Return whether there are few enough jobs for prices; a makespan is no sum over jobs."""
    return p.n <= _PRICED and not p.makespan


def suits_starts(p: PreparedJobs) -> bool:
    """Return whether there are few enough jobs for a search over starts."""
    return p.n <= _SEARCHED and not p.makespan
