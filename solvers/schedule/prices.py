"""Lagrange's bound by prices of GPU-seconds over time, and the cheapest start of every option under them, compiled.

With a price pi(t) >= 0 of a GPU-second at time t, constant within intervals of a grid, no schedule costs less than

    sum over jobs of min(price of leaving it out, min over options and starts s of slope (s + p) + d int_s^{s+p} pi)
    - G int pi

since together jobs hold at most G GPUs. Times need no rounding: the cost of an option is piecewise linear in its start,
and least where the start or the end meets the grid, the release or the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

from ..compiled.kernel import Floats, by_reference, inner, kernel
from ..processes import interruptible
from ..run import Run
from .decode import data_of
from .prepare import Ints, Prepared
from .profile import Data

_PULL = 0.5
"""Of the best prices on those of the next question (Wentges 1997): less to and fro."""
_SMALL = 200
"""Jobs up to which a master takes milliseconds: it need not be interrupted."""
_CLOSE = 1e-5
"""Relative distance of bound and master at which it is done."""


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
def run_cost(grid: Grid, data: Data, job: int, option: int, start: float) -> float:
    """Return what a run costs, prices included."""
    end = start + data.seconds[option]
    return float(data.slope[job] * end + data.gpus[option] * (integral(grid, end) - integral(grid, start)))


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


@dataclass(slots=True)
class Prices:
    """The best prices so far.

    Attributes:
        grid: of a GPU-second in each interval.
        bound: what they prove, the constant included.
        option, start, share: of the columns in the master's solution: which run, how much of it.
    """

    grid: Grid
    bound: float
    option: Ints
    start: FloatArray
    share: FloatArray


class Master:
    """Choose runs of jobs, in shares, that use no more GPU-seconds of any interval than there are."""

    def __init__(self, run: Run, p: Prepared, intervals: int, horizon: float) -> None:
        self.run, self.p = run, p
        self.zero = float(p.release.min())
        self.step = (horizon - self.zero) / intervals or 1.0
        self.data = data_of(p)
        self.count = intervals
        self.cost, self.at = np.zeros(len(p.gpus)), np.zeros(len(p.gpus))
        self.lp = highspy.Highs()
        self.lp.setOptionValue("output_flag", False)
        self.lp.setOptionValue("threads", 1)
        self.lp.HandleUserInterrupt = True
        inf = highspy.kHighsInf
        self.unit = max(
            1.0, float(np.nanmax(np.where(np.isfinite(p.price), p.price, 0.0))), float(p.slope.max()) * horizon
        )
        for _ in range(p.n):
            self.lp.addRow(1.0, 1.0, 0, [], [])
        for _ in range(intervals):
            self.lp.addRow(-inf, float(p.total), 0, [], [])
        for j in range(p.n):
            price = float(p.price[j])
            self.lp.addCol(price / self.unit if np.isfinite(price) else 1e3, 0.0, inf, 1, [j], [1.0])
        self.option: list[int] = []
        self.start: list[float] = []
        self.known: set[tuple[int, float]] = set()
        free = grid_of(np.zeros(intervals), self.zero, self.step)
        self.best = Prices(free, -np.inf, np.zeros(0, int), np.zeros(0), np.zeros(0))

    def add(self, option: int, start: float) -> bool:
        """Add the run of an option from `start` unless it is there."""
        key = option, round((start - self.zero) / self.step, 6)
        if key in self.known:
            return False
        self.known.add(key)
        p = self.p
        job = int(p.owner[option])
        k, inside = busy(start, float(p.seconds[option]), self.zero, self.step, self.count)
        rows = np.concatenate([[job], p.n + k + np.arange(len(inside))]).astype(np.int32)
        values = np.concatenate([[1.0], inside / self.step * p.gpus[option]])
        cost = float(p.slope[job] * (start + p.seconds[option])) / self.unit
        self.lp.addCol(cost, 0.0, highspy.kHighsInf, len(rows), rows, values)
        self.option.append(option)
        self.start.append(start)
        return True

    def price(self, pi: FloatArray) -> float:
        """Return the bound of some prices, and keep them if it is the best."""
        grid = grid_of(pi, self.zero, self.step)
        value = cheapest(grid, self.data, self.p.total, self.cost, self.at) + self.p.constant
        if value > self.best.bound:
            self.best.bound, self.best.grid = value, grid
        return value

    def solve(self) -> bool:
        """Generate columns until bound and master meet; return whether they do."""
        p = self.p
        self.price(np.zeros(self.count))
        self._add_cheapest(np.full(p.n, np.inf))
        while not self.run.stopped:
            self._run()
            if self.lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            value = self.lp.getInfo().objective_function_value * self.unit + p.constant
            dual = np.array(self.lp.getSolution().row_dual)
            pi = np.maximum(0.0, -dual[p.n :]) * self.unit / self.step
            if value - self.best.bound <= _CLOSE * abs(value):
                self._keep()
                return True
            smooth = _PULL * self.best.grid.pi + (1 - _PULL) * pi
            self.price(smooth)
            mine = dual[: p.n] * self.unit
            added = self._add_cheapest(mine, pi)
            if not added:
                self.price(pi)
                if not self._add_cheapest(mine, pi):
                    self._keep()
                    return True
        return False

    def _run(self) -> None:
        """Solve the master, for no longer than there is time."""
        self.lp.setOptionValue("time_limit", self.lp.getRunTime() + self.run.remaining())
        if self.p.n <= _SMALL:
            self.lp.run()
        else:
            interruptible(self.lp.run, self.lp.cancelSolve, lambda: self.run.stopped)

    def _add_cheapest(self, dual: FloatArray, pi: FloatArray | None = None) -> int:
        """Add, of each option, the cheapest run last found if it improves the master; return how many are new."""
        p, added = self.p, 0
        for j in range(p.n):
            mine = [o for o in p.options(j) if np.isfinite(self.cost[o])]
            if not mine:
                continue
            o = min(mine, key=lambda x: float(self.cost[x]))
            at = float(self.at[o])
            if pi is not None:
                k, inside = busy(at, float(p.seconds[o]), self.zero, self.step, self.count)
                energy = p.gpus[o] * float(pi[k : k + len(inside)] @ inside)
                if p.slope[j] * (at + p.seconds[o]) + energy - dual[j] >= -1e-9 * self.unit:
                    continue
            added += self.add(o, at)
        return added

    def _keep(self) -> None:
        share = np.array(self.lp.getSolution().col_value)[self.p.n :]
        used = np.flatnonzero(share > 1e-9)
        self.best.option, self.best.start = np.array(self.option)[used], np.array(self.start)[used]
        self.best.share = share[used]
