"""Times and costs as whole numbers: of the largest unit that all are multiples of, or of one that is small enough."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from gangplan.instances.arrays import FloatArray

from .prepare import Prepared

_PARTS = 1000
"""A common unit is looked for among so many parts of the smallest value."""
_EXACT = 1e-9
_TICKS, _UNITS = 1 << 32, 1 << 22
"""Ticks in the latest time and units in the largest cost of a tick, or price: sums of products stay within 64 bits."""


def common(values: FloatArray, ticks: int) -> float:
    """Return the largest number that all `values` are multiples of, none of more than so many; 0 if none is found."""
    positive = np.unique(values[(values > 0) & np.isfinite(values)])
    if not len(positive):
        return 1.0
    least, most = float(positive[0]), float(positive[-1])
    for parts in range(1, _PARTS + 1):
        ratio = positive / (least / parts)
        if most / least * parts > ticks:
            return 0.0
        if np.abs(ratio - np.round(ratio)).max() <= _EXACT * max(1.0, ratio[-1] * 1e-3):
            return least / parts
    return 0.0


def tick_of(p: Prepared) -> tuple[float, bool]:
    """Return the seconds of a tick, and whether all durations, releases and deadlines are whole ticks."""
    times = np.concatenate([p.seconds, p.release])
    unit = common(times, _TICKS)
    if unit:
        return unit, True
    return float(p.release.max() + times.sum()) / (_TICKS >> 2), False


def cost_of(p: Prepared, tick: float) -> tuple[float, bool]:
    """Return the unit of the goal less its constant, and whether slopes times ticks and prices are whole units."""
    values = np.concatenate([p.slope * tick, p.price[np.isfinite(p.price)], [tick] if p.makespan else []])
    unit = common(values, _UNITS)
    if unit:
        return unit, True
    largest = max(float(values.max(initial=0.0)), 1e-300)
    return largest / _UNITS, False


def resolution(p: Prepared) -> float:
    """Return what two values of the goal differ by at least in schedules without needless delay; 0 if unknown."""
    tick, whole = tick_of(p)
    unit, exact = cost_of(p, tick)
    return unit if whole and exact else 0.0


def rounded_up(p: Prepared, bound: float) -> float:
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
