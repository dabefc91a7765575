"""Refute a threshold by looking at all schedules below it: a certified search over jobs in order of start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import floor, inf
from operator import le
from typing import Any, ClassVar, NamedTuple

from ..errors import InstanceError
from .document import Certificate
from .exact import weights
from .grid import FINE, DegreeOption, TimeGrid

_STEPS = 20_000_000
"""Steps that any certificate may ask for: minutes."""
_LOOKS = 50
"""Beginnings of the same jobs that a new one is compared with."""
_NEVER = 2**20_000
"""Cost and time of what cannot be: no float is near it in any unit that floats have."""


@dataclass(frozen=True, slots=True)
class StartsCertificate(Certificate):
    """Start jobs one after the other, each as early as it can, as long as that may cost less than the threshold.

    Take a schedule that costs less. Move each job, in the order of starts, to the first time from the start before it
    on at which its GPUs are free and it is released: no start gets later, and times are whole. So it is enough to look
    at beginnings, sets of jobs with the times from which each GPU is free, that grow by a job at a time. One is dropped

    - if Lagrange says that the rest costs too much: with prices pi(t) >= 0 of a GPU from t on,

          cost + sum over the rest of min(price, min over options and starts s of cost(s) + d int pi) - sum int pi,

      where the last sum is over GPUs, each from when it is free on; of a makespan, until the last completion;
    - if another of the same jobs costs no more, and has its last start and all its GPUs free no later;
    - if the job that starts leaves out one that could run before it starts, and is worth it.

    A schedule with the least sum of starts below the threshold is never lost: the second has one in another's place,
    and the third has none of these. If beginnings come to an end, no schedule is below the threshold.

    Attributes:
        threshold: in the unit of the goal; a plan above it is no concern.
        times, prices: ascending seconds from the first release on, and prices of a GPU-second between each two.
        steps: in which the search is over, at most: a job of a beginning that may start is one. With 0 there is no
            search, and the bound is that of the prices.
    """

    objectives: ClassVar[tuple[str, ...]] = ("schedule",)

    threshold: Fraction
    times: tuple[Fraction, ...]
    prices: tuple[Fraction, ...]
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less slack; `inf` if a job must run and cannot."""
        weights(self.prices, max(0, len(self.times) - 1), "prices")
        if any(a >= b for a, b in pairwise(self.times)):
            raise InstanceError("times", "do not ascend")
        grid = TimeGrid(problem, self.threshold)
        if grid.impossible:
            return inf
        search = _StartTree(grid, _Paid(grid, self.times, self.prices))
        return grid.bound(search.least() if self.steps <= 0 else search.run(min(self.steps, _STEPS)))


class _Paid:
    """Prices over time in whole numbers, parts of the cost's unit; rounded ones are prices as well."""

    def __init__(self, grid: TimeGrid, times: tuple[Fraction, ...], prices: tuple[Fraction, ...]) -> None:
        self.times = [floor(x / grid.tick) for x in times]
        self.prices = [floor(x * grid.tick / grid.unit * FINE) for x in prices]
        steps = [(b - a) * price for (a, b), price in zip(pairwise(self.times), self.prices, strict=True)]
        self.sums = list(accumulate(steps, initial=0))
        self.known: dict[int, int] = {}

    def until(self, at: int) -> int:
        """Return the price of a GPU until a time."""
        if at not in self.known:
            k = bisect_right(self.times, at) - 1
            value = 0 if k < 0 else self.sums[k]
            if 0 <= k < len(self.prices):
                value += (at - self.times[k]) * self.prices[k]
            self.known[at] = value
        return self.known[at]


class _TimedOption:
    """An option of a task, with what it costs at least from any time on.

    The cost is piecewise linear in the start: least at an end of what is asked for, or where it starts or ends at one
    of the times.
    """

    def __init__(self, paid: _Paid, weight: int, option: DegreeOption) -> None:
        self.paid, self.weight, self.option = paid, weight * FINE, option
        _, ticks, first, last = option
        inner = {s for x in paid.times for s in (x, x - ticks) if first < s < last}
        self.starts = sorted({first, last, *inner})
        costs = [self.cost(s) for s in self.starts]
        self.costs = list(accumulate(reversed(costs), min))[::-1]

    def cost(self, s: int) -> int:
        """Return what it costs if it starts at s, with what it pays."""
        end = s + self.option.ticks
        return self.weight * end + self.option.gpus * (self.paid.until(end) - self.paid.until(s))

    def least(self, s: int) -> int:
        """Return what it costs at least if it starts at s or later."""
        if s <= self.option.first:
            return self.costs[0]
        return _NEVER if s > self.option.last else min(self.cost(s), self.costs[bisect_left(self.starts, s)])


class _Begun(NamedTuple):
    """A beginning: its last start, what its jobs cost without prices, and when each GPU is free, ascending."""

    at: int
    cost: int
    free: tuple[int, ...]


class _StartTree:
    def __init__(self, grid: TimeGrid, paid: _Paid) -> None:
        self.grid, self.paid = grid, paid
        self.prices = [_NEVER if task.price is None else task.price * FINE for task in grid.tasks]
        self.runs = [[_TimedOption(paid, task.weight, option) for option in task.options] for task in grid.tasks]
        self.most = (grid.goal - 1) * FINE
        self.columns: dict[int, list[int]] = {}
        # what a makespan of M costs, less the prices of all GPUs until then: least at one of the times
        self.ends = sorted({x for x in paid.times if x > 0})
        costs = [self._end(x) for x in self.ends]
        self.tails = list(accumulate(reversed(costs), min))[::-1]

    def _end(self, at: int) -> int:
        return self.grid.length * FINE * at - self.grid.gpus * self.paid.until(at)

    def _tail(self, last: int) -> int:
        """Return what the end of a schedule costs, from a completion on, less what all GPUs are worth until then."""
        if not self.grid.makespan:
            return -self.grid.gpus * self.paid.sums[-1]
        last = max(last, self.grid.alone)
        k = bisect_left(self.ends, last)
        return min(self._end(last), self.tails[k]) if k < len(self.ends) else self._end(last)

    def _column(self, at: int) -> list[int]:
        """Return what each job costs at least from a time on."""
        if at not in self.columns:
            least = (min((run.least(at) for run in runs), default=_NEVER) for runs in self.runs)
            self.columns[at] = list(map(min, least, self.prices))
        return self.columns[at]

    def _value(self) -> int:
        return sum(self._column(0)) + self._tail(0) + self.grid.gpus * self.paid.until(0)

    def least(self) -> int:
        """Return what all schedules cost at least."""
        return max(0, -(-self._value() // FINE))

    def run(self, steps: int) -> int:
        """Return the goal once nothing is left below it."""
        value, column = self._value(), self._column(0)
        layer = {0: [_Begun(0, 0, (0,) * self.grid.gpus)]} if value <= self.most else {}
        # some options alone cost too much
        slack = [self.most - value + least for least in column]
        self.runs = [[run for run in runs if run.costs[0] <= x] for runs, x in zip(self.runs, slack, strict=True)]
        self.columns.clear()
        while layer:
            new: dict[int, list[_Begun]] = {}
            for started, group in layer.items():
                rest = [j for j in range(len(self.prices)) if not started >> j & 1]
                alone = sum(self.prices[j] for j in rest)
                for begun in group:
                    last = max(begun.free[-1], self.grid.alone)
                    if begun.cost + alone + self.grid.length * FINE * last <= self.most:
                        raise InstanceError("threshold", f"a schedule costs less than {self.grid.threshold}")
                    steps -= len(rest)
                    for j, child in self._next(begun, rest):
                        _keep(new.setdefault(started | 1 << j, []), child)
                if steps < 0:
                    raise InstanceError("steps", "are over before the search is")
            layer = new
        return self.grid.goal

    def _next(self, begun: _Begun, rest: list[int]) -> Iterator[tuple[int, _Begun]]:
        """Yield the beginnings that are longer by a job."""
        at, cost, free = begun
        able, soonest = [], _NEVER
        for j in rest:
            price, weight = self.grid.tasks[j].price, self.grid.tasks[j].weight
            for run in self.runs[j]:
                gpus, ticks, first, last = run.option
                s = max(at, first, free[gpus - 1])
                if s <= last:
                    able.append((s, j, run))
                    if price is None or weight * (s + ticks) <= price:
                        soonest = min(soonest, s + ticks)
        known = dict[int, tuple[list[int], int, list[int]]]()
        for s, j, run in able:
            if s >= soonest:
                continue
            if s not in known:
                column = self._column(s)
                held = [self.paid.until(max(x, s)) for x in free]  # of the GPUs from each on, the prices until then
                sums = list(accumulate(reversed(held), initial=0))[::-1]
                known[s] = column, sum(column[i] for i in rest), sums
            column, waiting, sums = known[s]
            gpus, end = run.option.gpus, s + run.option.ticks
            spent = cost + run.weight * end
            paid = sums[gpus] + gpus * self.paid.until(end) + self._tail(max(end, free[-1]))
            if spent + waiting - column[j] + paid <= self.most:
                yield j, _Begun(s, spent, tuple(sorted([*(max(x, s) for x in free[gpus:]), *(end,) * gpus])))


def _keep(group: list[_Begun], new: _Begun) -> None:
    """Enter a beginning unless another is as good; those that it is as good as go."""
    for old in group[:_LOOKS]:
        if _as_good(old, new):
            return
    group[:] = [*(old for old in group[:_LOOKS] if not _as_good(new, old)), *group[_LOOKS:], new]


def _as_good(one: _Begun, other: _Begun) -> bool:
    return one.at <= other.at and one.cost <= other.cost and all(map(le, one.free, other.free))
