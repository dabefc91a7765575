"""The time-indexed LP by column generation: runs of jobs, GPU-seconds within each interval of a coarse grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

from ..processes import interruptible
from ..run import Run
from .decode import data_of
from .prepare import Ints, Prepared
from .prices import busy, cheapest, grid_of

_PULL = 0.5
"""Of the best prices on those of the next question (Wentges 1997): less to and fro."""
_SMALL = 200
"""Jobs up to which a master takes milliseconds: it need not be interrupted."""
_CLOSE = 1e-5
"""Relative distance of bound and master at which it is done."""


@dataclass(slots=True)
class Prices:
    """The best prices so far.

    Attributes:
        zero, step: seconds: where the grid begins, and its intervals.
        pi: price of a GPU-second in each, float64 (k,).
        bound: what they prove, the constant included.
        start, share, option: of the columns in the master's solution: which run, how much of it.
    """

    zero: float
    step: float
    pi: FloatArray
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
            self.lp.addRow(-inf, float(p.cluster.total), 0, [], [])
        for j in range(p.n):
            price = float(p.price[j])
            self.lp.addCol(price / self.unit if np.isfinite(price) else 1e3, 0.0, inf, 1, [j], [1.0])
        self.option: list[int] = []
        self.start: list[float] = []
        self.known: set[tuple[int, float]] = set()
        self.best = Prices(
            self.zero, self.step, np.zeros(intervals), -np.inf, np.zeros(0, int), np.zeros(0), np.zeros(0)
        )

    def add(self, o: int, start: float) -> bool:
        """Add the run of option o from `start` unless it is there."""
        key = o, round((start - self.zero) / self.step, 6)
        if key in self.known:
            return False
        self.known.add(key)
        p = self.p
        j = int(p.owner[o])
        k, inside = busy(start, float(p.seconds[o]), self.zero, self.step, self.count)
        rows = np.concatenate([[j], p.n + k + np.arange(len(inside))]).astype(np.int32)
        values = np.concatenate([[1.0], inside / self.step * p.gpus[o]])
        cost = float(p.slope[j] * (start + p.seconds[o])) / self.unit
        self.lp.addCol(cost, 0.0, highspy.kHighsInf, len(rows), rows, values)
        self.option.append(o)
        self.start.append(start)
        return True

    def price(self, pi: FloatArray) -> float:
        """Return the bound of some prices, and keep them if it is the best."""
        grid = grid_of(pi, self.zero, self.step)
        value = cheapest(grid, self.data, self.p.cluster.total, self.cost, self.at) + self.p.constant
        if value > self.best.bound:
            self.best.bound, self.best.pi = value, pi
        return value

    def solve(self) -> bool:
        """Generate columns until bound and master meet; return whether they do."""
        p = self.p
        self.price(np.zeros(self.count))
        self._add_cheapest(np.full(p.n, np.inf))
        self.iterations = 0
        while not self.run.stopped:
            self._run()
            if self.lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return False
            self.iterations += 1
            value = self.lp.getInfo().objective_function_value * self.unit + p.constant
            dual = np.array(self.lp.getSolution().row_dual)
            pi = np.maximum(0.0, -dual[p.n :]) * self.unit / self.step
            if value - self.best.bound <= _CLOSE * abs(value):
                self._keep()
                return True
            smooth = _PULL * self.best.pi + (1 - _PULL) * pi
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

    def _add_cheapest(self, dual: FloatArray, pi: Any = None) -> int:
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
