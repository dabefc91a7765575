"""Schedules in whole numbers: what the verifier lets pass is taken off a bound once, and all else is exact.

The verifier lets a run start early and end late by `off`, a share of its seconds and some places of its clock. Let all
runs of a plan end by F; with

    eta = SLACK max p + PLACES F,    delta = SLACK + PLACES F / min p,    T(x) = (x - zero + eta) / (1 - delta)

starts T(s) are no earlier than releases, counted from `zero`, and of runs of p seconds each that do not overlap where
the verifier saw no overlap: T stretches p - off to p or more. So each plan that it accepts is a schedule without any
slack, of which the sum over jobs of w (completion - zero) is at most (that of the plan + eta sum w) / (1 - delta).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import Any, NamedTuple

from ..errors import InstanceError
from ..schedule import holds, total
from .exact import PLACES, SLACK

FINE = 2**40
"""Parts of a unit of the cost that prices are rounded to."""


class Option(NamedTuple):
    """A job at one of its degrees; times in units.

    Attributes:
        gpus, ticks: that it holds, and for how long, above 0.
        first, last: between which times it starts.
    """

    gpus: int
    ticks: int
    first: int
    last: int


class Task(NamedTuple):
    """A job that costs something.

    Attributes:
        weight: cost of a unit of time before its completion.
        price: of leaving it out; `None` if it must run.
        options: how it can run and cost less than the threshold.
    """

    weight: int
    price: int | None
    options: list[Option]


class Grid:
    """The plans of a problem whose goal is below a threshold, as schedules of whole numbers.

    Attributes:
        tasks: the jobs; one of no cost, or whose price is below anything else that it may cost, is none.
        gpus: of the cluster, counted.
        zero, tick: seconds on the clock of the problem, of 0 and of a unit of time.
        goal: costs from which on a schedule is no concern.
        length: cost of a unit of the makespan, 0 of other goals.
        impossible: whether a job must run and cannot.
    """

    def __init__(self, problem: Any, threshold: Fraction) -> None:
        jobs, kind = problem.jobs, problem.goal
        self.gpus, count, mean = total(problem.capacity), len(jobs), kind == "mean_jct"
        self.threshold, self.makespan, self.impossible = threshold, kind == "makespan", False
        self._share = count if mean else 1
        prices = [None if (x := problem.price(j)) is None else Fraction(x) for j in range(count)]
        release = [Fraction(job.release) for job in jobs]
        sums = mean or kind == "weighted_completion"
        weights = [Fraction(1 if mean else job.weight) if sums else Fraction(0) for job in jobs]
        # without any job the makespan is 0 on every clock
        self.zero = min(release) if not self.makespan or None in prices else Fraction(0)
        self._all = Fraction(1) if self.makespan else sum(weights, Fraction(0))
        # what comes on top of the costs from zero on
        self._constant = self.zero if self.makespan else Fraction(0)
        if mean:
            self._constant = -sum(release, Fraction(0)) + count * self.zero
        elif sums:
            self._constant = self.zero * self._all
        budget = max(Fraction(0), threshold * self._share - self._constant)
        menus: list[tuple[Fraction, Fraction | None, Fraction, list[tuple[int, Fraction, Fraction]]]] = []
        for j, (job, w, price) in enumerate(zip(jobs, weights, prices, strict=True)):
            if price is not None:
                price += (release[j] if mean else Fraction(0)) - w * self.zero
            pairs = [
                (d, p)
                for d, p in zip(job.degrees, map(Fraction, job.durations), strict=True)
                if d <= self.gpus and holds(problem.capacity, d)
            ]
            dues = [Fraction(x) for x in (job.deadline, problem.horizon) if x is not None]
            due = min(dues, default=None)
            if due is not None:
                pairs = [x for x in pairs if release[j] + x[1] <= due + 2 * (SLACK * x[1] + PLACES * due)]
            if price is None and not pairs:
                self.impossible = True
            ends = [] if due is None else [due]
            if w:
                ends.append(self.zero + (budget + self._all * PLACES * self.zero) / w)
            if self.makespan:
                ends.append(threshold)
            if price is not None and price <= 0:
                self._constant += price
            elif ends:  # another may come after all others at no cost
                menus.append((w, price, min(ends), [(d, p, release[j]) for d, p in pairs]))
        self._scale(menus)

    def _scale(self, menus: list[Any]) -> None:
        last = max((end for _, _, end, _ in menus), default=Fraction(0))
        times = [p for _, _, _, menu in menus for _, p, _ in menu if p]
        self._early = SLACK * max(times, default=Fraction(0)) + PLACES * last
        self._short = SLACK + PLACES * last / min(times, default=Fraction(1))
        if self._short >= 1:
            raise InstanceError("threshold", f"{self.threshold} is beyond what clocks tell apart")
        self.tick = _common([*times, *(r - self.zero for _, _, _, menu in menus for _, _, r in menu)])
        prices = [price for _, price, _, _ in menus if price is not None]
        length = self.tick if self.makespan else Fraction(0)
        self.unit = _common([length, *(w * self.tick for w, _, _, _ in menus), *prices])
        self.length, self.goal = int(length / self.unit), max(0, self._up(self.threshold))
        self.tasks = []
        for w, price, end, menu in menus:
            options, cost = [], None if price is None else int(price / self.unit)
            weight = int(w * self.tick / self.unit)
            for d, p, r in menu:
                first, ticks = int((r - self.zero) / self.tick), int(p / self.tick)
                most = end + SLACK * p + PLACES * last - p - self.zero + self._early
                latest = floor(most / (1 - self._short) / self.tick)
                if self.makespan:  # the last completion is below the goal
                    latest = min(latest, -(-self.goal // self.length) - 1 - ticks)
                if not ticks:  # holds nothing, and costs least at once
                    cost = weight * first if cost is None else min(cost, weight * first)
                elif first <= latest:
                    options.append(Option(d, ticks, first, latest))
            self.tasks.append(Task(weight, cost, options))

    def _up(self, value: Fraction) -> int:
        """Return the least cost of schedules that is no less than a value of the goal."""
        return ceil((value * self._share - self._constant) / self.unit)

    def bound(self, cost: int) -> Fraction:
        """Return what a plan has at least, if no schedule costs less than `cost`."""
        value = (self._constant + (1 - self._short) * min(cost, self.goal) * self.unit) / self._share
        value -= self._early * self._all / self._share
        return min(self.threshold, value - PLACES * abs(value))


def _common(values: list[Fraction]) -> Fraction:
    """Return the largest number of which all are multiples; 1 if all are 0."""
    below = lcm(*(x.denominator for x in values))
    return Fraction(gcd(*(int(x * below) for x in values)) or below, below)
