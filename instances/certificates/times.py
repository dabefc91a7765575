"""Bounds of schedules: prices of GPU-seconds over time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import inf
from typing import Any, ClassVar, NamedTuple

from ..errors import InstanceError
from ..schedule import holds, total
from .document import Certificate
from .exact import PLACES, SLACK, weights


class Option(NamedTuple):
    """A job at one of its degrees, as the verifier may see it: a little earlier, a little shorter.

    Attributes:
        gpus, seconds: that it holds, and for how long.
        first, last: between which times it starts, seconds; `last` is `inf` without a deadline.
    """

    gpus: int
    seconds: Fraction
    first: Fraction
    last: Fraction | float


def options_of(problem: Any, j: int) -> list[Option]:
    """Return how job j can run alone on the cluster."""
    job, found = problem.jobs[j], []
    release = Fraction(job.release)
    ends = [Fraction(x) for x in (job.deadline, problem.horizon) if x is not None]
    for degree, seconds in zip(job.degrees, map(Fraction, job.durations), strict=True):
        first = max(Fraction(0), release - _off(seconds, release))
        last = min((x + _off(seconds, x) - seconds for x in ends), default=inf)
        if first <= last and degree <= total(problem.capacity) and holds(problem.capacity, degree):
            found.append(Option(degree, seconds, first, last))
    return found


def _off(seconds: Fraction, at: Fraction) -> Fraction:
    """Return what the verifier lets a time be off by."""
    return SLACK * seconds + PLACES * at


@dataclass(frozen=True, slots=True)
class Prices(Certificate):
    """Price GPU-seconds over time: no schedule costs less than its jobs do that each pay for what they hold.

    With a price pi(t) >= 0 of a GPU-second, constant between times and 0 outside,

        goal >= sum over jobs of min(cost of leaving it out, min over options and starts s of cost(s) + d int pi)
                - G int pi

    since together jobs hold no more than G GPUs (Lagrange). The cost of a run is piecewise linear in its start: it is
    least where the start or the end is at one of the times, or at the first or the last start.

    Attributes:
        times: ascending, seconds on the clock of the problem.
        prices: of a GPU-second between each two of them.
    """

    argument: ClassVar[str] = "prices"
    objectives: ClassVar[tuple[str, ...]] = ("schedule",)

    times: tuple[Fraction, ...]
    prices: tuple[Fraction, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the sum; `inf` if a job must run and cannot."""
        if problem.goal == "makespan":
            raise InstanceError("argument", "'prices' is about sums over jobs, and a makespan is none")
        weights(self.prices, max(0, len(self.times) - 1), "prices")
        if any(a >= b for a, b in pairwise(self.times)):
            raise InstanceError("times", "do not ascend")
        paid = _Paid(self.times, self.prices)
        value = -total(problem.capacity) * paid.all
        jobs, mean = problem.jobs, problem.goal == "mean_jct"
        share, timed = Fraction(1, len(jobs) if mean else 1), mean or problem.goal == "weighted_completion"
        for j, job in enumerate(jobs):
            # what a second before its completion costs; that is rounded to places of the clock
            weight = share * Fraction(1 if mean else job.weight) * (1 - PLACES) if timed else Fraction(0)
            price = problem.price(j)
            costs = [] if price is None else [share * Fraction(price)]
            less = share * Fraction(job.release) if mean else 0
            costs += [paid.least(option, weight) - less for option in options_of(problem, j)]
            if not costs:
                return inf
            value += min(costs)
        return value - PLACES * abs(value)


class _Paid:
    """Prices with their sums; `all` is that of a GPU over all times."""

    def __init__(self, times: tuple[Fraction, ...], prices: tuple[Fraction, ...]) -> None:
        self.times, self.prices = times, prices
        steps = [(b - a) * price for (a, b), price in zip(pairwise(times), prices, strict=True)]
        self.sums = list(accumulate(steps, initial=Fraction(0)))
        self.all, self.highest = self.sums[-1], max(prices, default=Fraction(0))

    def until(self, at: Fraction) -> Fraction:
        """Return the price of a GPU until a time."""
        k = bisect_right(self.times, at) - 1
        if k < 0:
            return Fraction(0)
        return self.all if k >= len(self.prices) else self.sums[k] + (at - self.times[k]) * self.prices[k]

    def least(self, option: Option, weight: Fraction) -> Fraction:
        """Return the least that an option costs, less what it may hold too short by."""
        last = self.times[-1] if self.times else Fraction(0)
        first, latest = option.first, option.last
        # after the last time a run pays nothing, and sooner is cheaper
        starts = {first, *([] if latest == inf else [Fraction(latest)]), max(first, last)}
        starts.update(at for x in self.times for at in (x, x - option.seconds))
        best: Fraction | None = None
        for s in sorted(s for s in starts if first <= s <= latest):
            end = s + option.seconds
            if best is not None and weight * end >= best:
                break
            cost = weight * end + option.gpus * (self.until(end) - self.until(s))
            best = cost if best is None else min(best, cost)
        assert best is not None  # the first start is one of them
        return best - option.gpus * self.highest * _off(option.seconds, 2 * max(last, Fraction(0)) + option.seconds)
