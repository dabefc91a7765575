"""A quantity that jumps, over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What a quantity is from each of k times on; before the first of them it is 0.

    Attributes:
        time: seconds, ascending, no two alike, float64 (k,).
        value: from then until the next time, float64 (k,).
    """

    time: FloatArray
    value: FloatArray

    @classmethod
    def of(cls, time: NDArray[Any], change: NDArray[Any]) -> Steps:
        """Sum up changes, in any order; what changes at infinity does not count."""
        there = np.isfinite(time)
        time, change = time[there], change[there]
        order = np.argsort(time, kind="stable")
        time, value = time[order], np.cumsum(change[order], dtype=np.float64)
        last = np.ones(len(time), dtype=bool)
        last[:-1] = time[1:] != time[:-1]
        return cls(time[last].astype(np.float64), value[last])

    def at(self, times: FloatArray) -> FloatArray:
        """Return the quantity at each of `times`."""
        i = np.searchsorted(self.time, times, side="right")
        return np.asarray(np.concatenate([[0.0], self.value])[i])

    def integral(self, times: FloatArray) -> FloatArray:
        """Return the integral up to each of `times`, in seconds times the unit."""
        if not len(self.time):
            return np.zeros(len(times))
        upto = np.concatenate([[0.0], np.cumsum(self.value[:-1] * np.diff(self.time))])
        i = np.searchsorted(self.time, times, side="right") - 1
        inside = i >= 0
        return np.where(inside, upto[i] + self.value[i] * (times - self.time[i]), 0.0)

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean between each edge and the next, float64 (len(edges) - 1,); of no time, 0."""
        long = np.diff(edges)
        over = np.diff(self.integral(edges))
        return np.divide(over, long, out=np.zeros(len(long)), where=long > 0)

    def mean(self, start: float, end: float) -> float:
        """Return the mean from `start` to `end`; of no time, 0."""
        return float(self.means(np.array([start, end]))[0])
