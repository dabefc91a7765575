"""Lagrange's bound by prices of GPU-seconds over time, the best of which the volume algorithm finds.

With a price pi(t) >= 0 of a GPU-second at time t, constant within intervals of a grid, no schedule costs less than

    sum over jobs of min(price of leaving it out, min over options and starts s of slope (s + p) + d int_s^{s+p} pi)
    - G int pi

since together jobs hold at most G GPUs. Times need no rounding: the cost of an option is piecewise linear in its start,
and least where the start or the end meets the grid, the release or the deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .kernels import Data
from .prepare import PreparedJobs
from .price_kernels import Grid
from .run_kernels import answer, cheapest

Levels = tuple[tuple[int, int], ...]
LEVELS: Levels = (48, 40), (96, 120), (192, 240)
"""Intervals of the grids, over all, then up to where GPUs cost something, and steps on each at most."""
FINER: Levels = *LEVELS, (384, 480)
"""The same for a search, of which prices nearer to the best cut off more."""
_SHARES = 0.12, 0.2, 0.28, 0.4, 0.6, 1.0
"""Of the prices that a schedule stands for: the first ones are the best of these, 0.1 to 0.4 of those of a list."""
_STEP, _LESS, _FAILS, _LEAST = 0.1, 0.66, 8, 1e-4
"""Of the step that would close the gap if prices were right: the first, what is left of it after so many steps that
gained nothing, and at which it is over."""
_NEW = 0.1
"""Weight of the last answer in the mean of all."""
OFTEN = 20
"""Steps between two schedules."""


class BestPrices(NamedTuple):
    """The best prices so far.

    Attributes:
        grid: of a GPU-second in each interval.
        bound: what they prove, the constant included.
        share: of each option, how much of it runs in the mean of the cheapest answers, (o,).
        mean: start of each job there, (n,).
    """

    grid: Grid
    bound: float
    share: FloatArray
    mean: FloatArray


def ascend(
    run: Run,
    p: PreparedJobs,
    end: float,
    tell: Callable[[BestPrices], None],
    levels: Levels = LEVELS,
    often: int = OFTEN,
) -> BestPrices | None:
    """Raise the bound of prices up to `end`, on finer and finer grids, by the volume algorithm.

    Prices go along the GPU-seconds that the mean of all answers so far uses too much (Barahona and Anbil 2000): that
    mean comes near a solution of the time-indexed LP.

    Args:
        tell: is given the best prices, with the means, every `often` steps.
        levels: of the grids.
    """
    best: BestPrices | None = None
    zero = float(p.release.min())
    for intervals, most in levels:
        if run.stopped:
            break
        step = (end - zero) / intervals or 1.0
        middle = np.asarray(zero + step * (np.arange(intervals) + 0.5), dtype=np.float64)
        first = _about(run, p, middle) if best is None else _at(best.grid, middle)
        found = _PriceLevel(run, p, Grid(first, zero, step), best).ascend(tell, most, often)
        best = found if best is None or found.bound > best.bound else best
        priced = np.flatnonzero(best.grid.pi > 1e-9 * best.grid.pi.max(initial=0.0))
        if not len(priced):
            break
        end = zero + best.grid.step * float(min(len(best.grid.pi), priced[-1] + 2))
    return best


def _at(grid: Grid, times: FloatArray) -> FloatArray:
    """Return the prices at some times, at the nearest end of the grid for those outside."""
    return np.asarray(grid.pi[np.clip((times - grid.zero) / grid.step, 0, len(grid.pi) - 1).astype(int)])


def _about(run: Run, p: PreparedJobs, at: FloatArray) -> FloatArray:
    """Return what GPU-seconds are worth if all that runs later, in the plan known, would wait for them."""
    if run.plan is None:
        return np.zeros(len(at))
    runs = np.flatnonzero(run.plan.degree >= 0)
    start, lasts = run.plan.start[runs], np.array([p.problem.jobs[j].durations[run.plan.degree[j]] for j in runs])
    order = np.argsort(start)
    start, finish, worth = start[order], (start + lasts)[order], (p.slope[runs] / np.maximum(lasts, 1e-9))[order]
    left = [(worth * np.clip(finish - np.maximum(start, t), 0.0, None)).sum() for t in at.tolist()]
    return np.array(left) / p.total


class _PriceLevel:
    def __init__(self, run: Run, p: PreparedJobs, first: Grid, before: BestPrices | None) -> None:
        self._run, self._p, self._data, self.grid = run, p, Data(p), first
        self._cost, self._at = np.zeros(len(p.gpus)), np.zeros(len(p.gpus))
        self._used, self._room = np.zeros(len(first.pi)), p.total * first.step
        self._share, self._mean = np.zeros(len(p.gpus)), np.zeros(p.n)
        self.bound, pi = -np.inf, first.pi
        for share in _SHARES if before is None else (1.0,):
            self._ask(share * pi)
        self._ask(self.grid.pi)
        if before is not None:
            self._share, self._mean = before.share, before.mean
        answer(self.grid, self._data, self._cost, self._at, float(before is None), self._used, self._share, self._mean)

    def _ask(self, pi: FloatArray) -> bool:
        """Find the cheapest runs under some prices, and keep the prices if their bound is the best."""
        grid = Grid(pi, self.grid.zero, self.grid.step)
        value = cheapest(grid, self._data, self._p.total, self._cost, self._at) + self._p.constant
        if not value > self.bound:
            return False
        self.bound, self.grid = value, grid
        return True

    def ascend(self, tell: Callable[[BestPrices], None], most: int, often: int) -> BestPrices:
        run, over = self._run, self._used - self._room
        length, fails = _STEP, 0
        for i in range(1, most + 1):
            if run.stopped or length < _LEAST:
                break
            along = np.where((self.grid.pi <= 0) & (over < 0), 0.0, over)
            upper = run.objective if run.objective is not None else 1.1 * self.bound + 1.0
            size = length * max(upper - self.bound, 1e-4 * abs(upper)) / max(float(along @ along), 1e-12)
            better = self._ask(np.maximum(0.0, self.grid.pi + size * along))
            answer(self.grid, self._data, self._cost, self._at, _NEW, self._used, self._share, self._mean)
            now = self._used - self._room
            over = (1 - _NEW) * over + _NEW * now
            fails = 0 if better else fails + 1
            if better and now @ along > 0:
                length = min(length * 1.1, 2.0)
            elif fails >= _FAILS:
                length, fails = length * _LESS, 0
            if i % often == 0:
                tell(self._prices())
        return self._prices()

    def _prices(self) -> BestPrices:
        return BestPrices(self.grid, self.bound, self._share, self._mean)
