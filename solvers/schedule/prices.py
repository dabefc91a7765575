"""Lagrange's bound by prices of GPU-seconds over time, and the cheapest start of every option under them, compiled.

With a price pi(t) >= 0 of a GPU-second at time t, constant within intervals of a grid, no schedule costs less than

    sum over jobs of min(price of leaving it out, min over options and starts s of slope (s + p) + d int_s^{s+p} pi)
    - G int pi

since together jobs hold at most G GPUs. Times need no rounding: the cost of an option is piecewise linear in its start,
and least where the start or the end meets the grid, the release or the deadline.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled.kernel import Floats, by_reference, inner, kernel
from .profile import Data


class Grid(NamedTuple):
    """Prices of a GPU-second, constant within intervals.

    Attributes:
        pi: of each interval, (k,).
        total: of a GPU from the beginning of the grid to that of each interval, and to the end, (k + 1,).
        zero, step: the beginning, and the seconds of an interval.
    """

    pi: Floats
    total: Floats
    zero: float
    step: float


def grid_of(pi: Floats, zero: float, step: float) -> Grid:
    """Return prices with their sums."""
    return Grid(pi, np.concatenate([[0.0], np.cumsum(pi) * step]), zero, step)


@inner
def integral(grid: Grid, at: float) -> float:
    """Return the price of a GPU from the beginning of the grid to `at`; beyond its end GPUs cost nothing."""
    x = (at - grid.zero) / grid.step
    k = int(x)
    if x <= 0:
        return 0.0
    if k >= len(grid.pi):
        return float(grid.total[len(grid.pi)])
    return float(grid.total[k] + (x - k) * grid.step * grid.pi[k])


@inner
def run_cost(grid: Grid, data: Data, j: int, o: int, start: float) -> float:
    """Return what a run costs, prices included."""
    end = start + data.seconds[o]
    return float(data.slope[j] * end + data.gpus[o] * (integral(grid, end) - integral(grid, start)))


@kernel
def cheapest(prices: Grid, problem: Data, total_gpus: int, cost: Floats, start: Floats) -> float:
    """Write the least cost of each option, prices included, and its start; return the bound without the constant.

    The cost is inf where an option cannot run.
    """
    grid, data = by_reference(prices), by_reference(problem)
    zero, step, count = grid.zero, grid.step, len(grid.pi)
    bound, all_of_them = 0.0, 0.0
    for j in range(len(data.release)):
        release = data.release[j]
        begin = max(0, int((release - zero) / step))
        least_of_all = data.price[j]
        for o in range(data.first[j], data.first[j + 1]):
            p = data.seconds[o]
            last = data.deadline[j] - p
            least, when = np.inf, release
            for which in range(2):
                # grid points as starts, then as ends
                shift = p if which else 0.0
                k = begin if not which else max(0, int((release + p - zero) / step))
                while k <= count:
                    s = zero + k * step - shift
                    k += 1
                    if s < release:
                        continue
                    if s > last or data.slope[j] * (s + p) >= least:
                        break
                    value = run_cost(grid, data, j, o, s)
                    if value < least:
                        least, when = value, s
            for which in range(2):
                s = last if which else release
                if s < np.inf and s >= release:
                    value = run_cost(grid, data, j, o, s)
                    if value < least:
                        least, when = value, s
            cost[o], start[o] = least, when
            least_of_all = min(least_of_all, least)
        bound += least_of_all
    for k in range(count):
        all_of_them += grid.pi[k]
    return float(bound - total_gpus * step * all_of_them)


@kernel
def busy(start: float, seconds: float, zero: float, step: float, count: int) -> tuple[int, Floats]:
    """Return (first interval, seconds in each from there on) of a run."""
    k = int((start - zero) / step)
    last = min(count, int((start + seconds - zero) / step) + 1)
    k = min(k, count)
    inside = np.zeros(max(0, last - k))
    for i in range(len(inside)):
        low = zero + (k + i) * step
        inside[i] = max(0.0, min(start + seconds, low + step) - max(start, low))
    return k, inside
