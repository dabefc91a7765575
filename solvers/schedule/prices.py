"""Lagrange's bound by prices of GPU-seconds over time, and the cheapest start of every option under them, compiled.

With a price pi(t) >= 0 of a GPU-second at time t, constant within intervals of a grid, no schedule costs less than

    sum over jobs of min(price of leaving it out, min over options and starts s of slope (s + p) + d int_s^{s+p} pi)
    - G int pi

since together jobs hold at most G GPUs. Times need no rounding: the cost of an option is piecewise linear in its start,
and least where the start or the end meets the grid, the release or the deadline.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def integral(total: Any, pi: Any, zero: float, step: float, at: float) -> float:
    """Return the price of a GPU from the beginning of the grid to `at`; beyond its end GPUs cost nothing."""
    x = (at - zero) / step
    k = int(x)
    if x <= 0:
        return 0.0
    if k >= len(pi):
        return float(total[len(pi)])
    return float(total[k] + (x - k) * step * pi[k])


@njit(cache=True)
def cheapest(pi: Any, zero: float, step: float, data: Any, cost: Any, start: Any) -> None:
    """Write the least cost of each option, prices included, and its start; inf where it cannot run."""
    first, gpus, seconds, release, deadline, slope = data[:6]
    total = np.zeros(len(pi) + 1)
    total[1:] = np.cumsum(pi) * step
    for j in range(len(release)):
        begin = max(0, int((release[j] - zero) / step))
        for o in range(first[j], first[j + 1]):
            p, last = seconds[o], deadline[j] - seconds[o]
            least, when = np.inf, release[j]
            for which in range(2):
                # grid points as starts, then as ends
                shift = p if which else 0.0
                k = begin if not which else max(0, int((release[j] + p - zero) / step))
                while k <= len(pi):
                    s = zero + k * step - shift
                    k += 1
                    if s < release[j]:
                        continue
                    if s > last:
                        break
                    value = slope[j] * (s + p)
                    if value >= least:
                        break
                    value += gpus[o] * (integral(total, pi, zero, step, s + p) - integral(total, pi, zero, step, s))
                    if value < least:
                        least, when = value, s
            for s in (release[j], last):
                if s < np.inf and s >= release[j]:
                    value = slope[j] * (s + p) + gpus[o] * (
                        integral(total, pi, zero, step, s + p) - integral(total, pi, zero, step, s)
                    )
                    if value < least:
                        least, when = value, s
            cost[o], start[o] = least, when


@njit(cache=True)
def busy(start: float, seconds: float, zero: float, step: float, count: int) -> Any:
    """Return (first interval, seconds in each from there on) of a run."""
    k = int((start - zero) / step)
    last = min(count, int((start + seconds - zero) / step) + 1)
    k = min(k, count)
    inside = np.zeros(max(0, last - k))
    for i in range(len(inside)):
        low = zero + (k + i) * step
        inside[i] = max(0.0, min(start + seconds, low + step) - max(start, low))
    return k, inside


@njit(cache=True)
def worth(pi: Any, step: float, total_gpus: int, cost: Any, data: Any) -> float:
    """Return the bound without the constant; `cost` as `cheapest` has it."""
    first, price = data[0], data[6]
    value = 0.0
    for j in range(len(price)):
        least = price[j]
        for o in range(first[j], first[j + 1]):
            least = min(least, cost[o])
        value += least
    return float(value - total_gpus * step * pi.sum())
