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
from math import ceil, floor, gcd, inf, lcm
from typing import Any, NamedTuple

from ..errors import InstanceError
from ..schedule import holds, total
from .exact import PLACES, SLACK

FINE = 2**40
"""Parts of a unit of the cost that prices are rounded to."""


class DegreeOption(NamedTuple):
    """A job at one of its degrees: GPUs, how long it holds them, above 0, and between which times it starts."""

    gpus: int
    ticks: int
    first: int
    last: int


class TimedTask(NamedTuple):
    """A job that costs something.

    Attributes:
        weight: cost of a unit of time before its completion.
        price: of leaving it out; `None` if it must run.
        options: how it can run and cost less than the threshold.
    """

    weight: int
    price: int | None
    options: list[DegreeOption]


class TimeGrid:
    """The plans of a problem whose goal is below a threshold, as schedules of whole numbers.

    Attributes:
        tasks: the jobs; one that is sure to be left out, or costs nothing after all others, is none.
        gpus: of the cluster, counted.
        zero, tick: seconds on the clock of the problem, of 0 and of a unit of time.
        unit: of costs, a part of the goal's unit.
        goal: costs from which on a schedule is no concern.
        length: cost of a unit of the makespan, 0 of other goals.
        alone: no makespan is below it, units of time.
        impossible: whether a job must run and cannot.
    """

    def __init__(self, problem: Any, threshold: Fraction) -> None:
        jobs, mean, self.makespan = problem.jobs, problem.goal == "mean_jct", problem.goal == "makespan"
        self.gpus, self.threshold, self._share = total(problem.capacity), threshold, len(jobs) if mean else 1
        release, sums = [Fraction(job.release) for job in jobs], mean or problem.goal == "weighted_completion"
        weights = [Fraction(1 if mean else job.weight) if sums else Fraction(0) for job in jobs]
        prices = [None if (x := problem.price(j)) is None else Fraction(x) for j in range(len(jobs))]
        # without any job the makespan is 0 on every clock
        self.zero = min(release) if not self.makespan or None in prices else Fraction(0)
        self._all = Fraction(self.makespan) or sum(weights, Fraction(0))
        # what comes on top of the costs from zero on
        self._constant = self._all * self.zero - (sum(release) if mean else 0)
        menus: list[_Menu] = []
        for job, r, w, asked in zip(jobs, release, weights, prices, strict=True):
            dues = [Fraction(x) for x in (job.deadline, problem.horizon) if x is not None]
            runs = [
                (d, p)
                for d, p in zip(job.degrees, map(Fraction, job.durations), strict=True)
                if d <= self.gpus and holds(problem.capacity, d)
                if all(r + p <= due + 2 * (SLACK * p + PLACES * due) for due in dues)
            ]
            price = None if asked is None else asked + (r if mean else 0) - w * self.zero
            if price is not None and (price <= 0 or not runs):
                self._constant += price
                continue
            menus.append(_Menu(w, price, min([*dues, *([threshold] if self.makespan else [])], default=inf), r, runs))
        # what may be spent on one job: each other costs no less than nothing, but for places of the clock
        budget = max(Fraction(0), threshold * self._share - self._constant) + self._all * PLACES * self.zero
        menus = [m._replace(end=min(m.end, self.zero + budget / m.weight)) if m.weight else m for m in menus]
        menus = [m for m in menus if m.end < inf or not m.runs]  # others come after all at no cost
        self.impossible = any(menu.price is None and not menu.runs for menu in menus)
        last = max([self.zero, *(Fraction(m.end) for m in menus if m.runs)])
        times = {p for m in menus for _, p in m.runs if p}
        self._early = SLACK * max(times, default=Fraction(0)) + PLACES * last
        self._short = SLACK + PLACES * last / min(times, default=Fraction(1))
        if self._short >= 1:
            raise InstanceError("threshold", f"{threshold} is beyond what clocks tell apart")
        self.tick = _common([*times, *(menu.release - self.zero for menu in menus)])
        length = self.tick * self.makespan
        self.unit = _common([length, *(m.weight * self.tick for m in menus), *(m.price or length for m in menus)])
        self.length = int(length / self.unit)
        self.goal = max(0, ceil((threshold * self._share - self._constant) / self.unit))
        self.tasks = [self._task(menu, last) for menu in menus]
        must = [m.release - self.zero + min(p for _, p in m.runs) for m in menus if m.price is None and m.runs]
        self.alone = int(max(must, default=Fraction(0)) / self.tick)

    def _task(self, menu: _Menu, last: Fraction) -> TimedTask:
        options, cost = [], None if menu.price is None else int(menu.price / self.unit)
        weight, first = int(menu.weight * self.tick / self.unit), int((menu.release - self.zero) / self.tick)
        for d, p in menu.runs:
            latest = Fraction(menu.end) - self.zero + SLACK * p + PLACES * last - p + self._early
            at, ticks = floor(latest / (1 - self._short) / self.tick), int(p / self.tick)
            if self.makespan:  # the last completion is below the goal
                at = min(at, -(-self.goal // self.length) - 1 - ticks)
            if not ticks:  # it holds nothing, and costs least at once
                cost = weight * first if cost is None else min(cost, weight * first)
            elif first <= at:
                options.append(DegreeOption(d, ticks, first, at))
        return TimedTask(weight, cost, options)

    def bound(self, cost: int) -> Fraction:
        """Return what a plan has at least, if no schedule costs less than `cost`."""
        costs = (1 - self._short) * min(cost, self.goal) * self.unit - self._early * self._all
        value = (self._constant + costs) / self._share
        return min(self.threshold, value - PLACES * abs(value))


class _Menu(NamedTuple):
    """A job by exact numbers: its latest end that is of concern, and the degrees and seconds of its options."""

    weight: Fraction
    price: Fraction | None
    end: Fraction | float
    release: Fraction
    runs: list[tuple[int, Fraction]]


def _common(values: list[Fraction]) -> Fraction:
    """Return the largest number of which all are multiples; 1 if all are 0."""
    below = lcm(*(x.denominator for x in values))
    return Fraction(gcd(*(int(x * below) for x in values)) or below, below)
