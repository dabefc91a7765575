"""Bound the mean completion of jobs that are all there now, by prices of GPU-seconds that never rise over time.

With prices pi(t) >= 0 that do not rise, G GPUs, and jobs that hold d GPUs for p seconds, stopped and resumed at will,
the sum of completions is at least

    sum over jobs of min over c >= p of (c + d int_{c-p}^c pi)  -  G int pi

(Lagrange): what a job holds before its completion c costs no less than the p seconds just before c, which are the
cheapest. A job that is never stopped has c = p. Any such prices are valid, so those of another moment are too.

On one machine as fast as all GPUs, the least work first, a GPU-second is worth the share of a job that waits for it:
pi falls from n / G to 0 by 1 / G a job. So the bound is that of Eastman, Even and Isaacs (1964), mean times
at which work is done and half of each run, but for the grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

_INTERVALS = 48
"""Of the grid, each with as many completions on one fast machine."""
_STEP, _LESS = 0.5, 0.6
"""Of the step that would close the gap if prices were right: the first; what is left after one that gains nothing."""
_OLD = 0.6
"""Weight of the steps before in the direction of the next."""


class Waiting(NamedTuple):
    """Jobs that are there now, n of them.

    Attributes:
        gpus: of the cluster.
        left, need: seconds of each job, and GPUs that it holds meanwhile, (n,).
        stays: whether it runs, and is never stopped, (n,).
    """

    gpus: int
    left: FloatArray
    need: FloatArray
    stays: BoolArray


class GpuPrices(NamedTuple):
    """Prices of a GPU-second: `pi` between each two of `times`, which ascend from now on, and nothing after."""

    times: FloatArray
    pi: FloatArray

    @property
    def total(self) -> FloatArray:
        """What a GPU costs from now until each of the times."""
        return np.concatenate([[0.0], np.cumsum(self.pi * np.diff(self.times))])

    def later(self, seconds: float, times: FloatArray) -> GpuPrices:
        """Return what is left of them so many seconds later, as means between other times."""
        paid = np.interp(times + seconds, self.times, self.total)
        return GpuPrices(times, np.diff(paid) / np.diff(times))


def squashed(jobs: Waiting) -> GpuPrices:
    """Return the prices of one machine as fast as all GPUs: jobs that wait for a GPU-second, over GPUs."""
    n = len(jobs.left)
    ends = np.cumsum(np.sort(jobs.need * jobs.left)) / jobs.gpus
    times = np.unique(np.append(0.0, ends[np.linspace(0, n - 1, min(n, _INTERVALS)).astype(int)]))
    middle = (times[:-1] + times[1:]) / 2
    return GpuPrices(times, np.interp(middle, np.append(0.0, ends), np.arange(n, -1, -1) / jobs.gpus))


def bound(
    jobs: Waiting, steps: int, most: float, before: GpuPrices | None = None, since: float = 0.0
) -> tuple[float, GpuPrices]:
    """Return (bound on the sum of completions, its prices), raised by some steps of a subgradient method.

    Args:
        steps: at most; 0 takes the prices as they are.
        most: the sum in some schedule.
        before, since: prices of another moment to start from if they are better, and the seconds since then.
    """
    prices = squashed(jobs)
    if len(prices.times) < 2:
        return float(jobs.left.sum()), prices
    best, over = _ask(jobs, prices)
    if before is not None:
        again = before.later(since, prices.times)
        value, use = _ask(jobs, again)
        if value > best:
            best, over, prices = value, use, again
    wide, length, along = np.diff(prices.times), _STEP, over
    for _ in range(steps):
        gap, norm = most - best, float((along * along / wide).sum())
        if gap <= 1e-9 * most or norm <= 0:
            break
        pi = prices.pi + length * gap / norm * along / wide
        tried = GpuPrices(prices.times, np.maximum.accumulate(np.maximum(pi, 0.0)[::-1])[::-1])
        value, use = _ask(jobs, tried)
        if value > best:
            best, prices = value, tried
        else:
            length *= _LESS
        along = _OLD * along + (1 - _OLD) * use
    return max(float(jobs.left.sum()), best) * (1 - 1e-9), prices


def _ask(jobs: Waiting, prices: GpuPrices) -> tuple[float, FloatArray]:
    """Return the bound of some prices, and what cheapest runs use of each interval more than there is, GPU-seconds."""
    times, total = prices.times, prices.total
    left, need = jobs.left[:, None], jobs.need[:, None]
    # the cost is piecewise linear in the start: least where the start or the end is at one of the times
    starts = np.concatenate([np.broadcast_to(times, (len(left), len(times))), np.maximum(times - left, 0.0)], axis=1)
    paid = np.interp(starts + left, times, total) - np.interp(starts, times, total)
    cost = starts + left + need * paid
    cost[jobs.stays, 1:] = np.inf
    chosen = np.argmin(cost, axis=1)[:, None]
    start = np.take_along_axis(starts, chosen, axis=1)
    used = np.clip(np.minimum(start + left, times[1:]) - np.maximum(start, times[:-1]), 0.0, None) * need
    value = float(np.take_along_axis(cost, chosen, axis=1).sum() - jobs.gpus * total[-1])
    return value, used.sum(axis=0) - jobs.gpus * np.diff(times)
