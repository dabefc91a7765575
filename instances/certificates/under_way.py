"""Bounds on stages: memory and work together, by how many samples are under way."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf, lcm
from sys import float_info
from typing import Any, ClassVar

from ..errors import InstanceError, brief
from .classes import numbered
from .document import Certificate
from .exact import SLACK, exact, weights


@dataclass(frozen=True, slots=True)
class UnderWayCertificate(Certificate):
    """Price the classes of ops, and count what sequences of stages can hold at most.

    A stage of r replicas of t devices, with R replicas in all later stages, has v = ceil(R / r) further samples under
    way in training, else none. Its classes z hold once z + v kept z <= capacity on each device, and their seconds are
    no more than T r if the objective is T. So for any w >= 0 and u >= 0 their prices are at most

        w T r + u capacity + sum of max(0, pi - w seconds - u (once + v kept)).

    Every class is in some stage, and stages use t r devices each, no more than there are: if the most that a sequence
    of stages comes to (a longest path over devices, from the last stage on) is less than all prices, no plan has an
    objective of T, and with w = 0 none has any. Of D devices behind a stage there are D / t replicas at least, with the
    largest t; fewer samples under way allow more. Classes of one degree can be elsewhere at another: each is its best.

    Attributes:
        threshold: T; 0 if it does not matter.
        prices: pi of each class.
        seconds: the weights w that are tried, 0 alone if T does not matter.
        samples: counts v that are looked at, ascending from 0; others count as the next lower.
    """

    objectives: ClassVar[tuple[str, ...]] = ("stages",)

    threshold: Fraction
    prices: tuple[Fraction, ...]
    seconds: tuple[Fraction, ...]
    samples: tuple[int, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, or `inf` if it does not matter."""
        memory = problem.cluster.device_types[problem.kind].memory
        if memory is None:
            raise InstanceError("prices", "of memory that has no limit")
        of = numbered(problem.graph.colocation.tolist())
        weights(self.prices, max(of) + 1, "prices")
        weights(self.seconds, max(1, len(self.seconds)), "seconds")
        if self.samples[:1] != (0,) or any(a >= b for a, b in pairwise(self.samples)):
            raise InstanceError("samples", f"{brief(list(self.samples))} do not ascend from 0")
        if self.samples[-1] > problem.cluster.n_devices:
            raise InstanceError("samples", f"{brief(self.samples[-1])} are more than there are devices")
        held = self._held(problem, of, Fraction(memory) * (1 + SLACK))
        devices, degrees = problem.cluster.n_devices, problem.options().degree.tolist()
        each = [w * self.threshold for w in self.seconds]
        best: list[Fraction | None] = [Fraction(0)] + [None] * devices
        for later in range(devices):
            before, behind = best[later], -(-later // max(degrees)) if problem.training else 0
            for t, by_count in zip(degrees, held, strict=True):
                for r in range(1, (devices - later) // t + 1 if before is not None else 0):
                    row = by_count[bisect_right(self.samples, -(-behind // r)) - 1]
                    most = min(x + r * w if w else x for w, x in zip(each, row, strict=True))
                    value, end = (before or 0) + most, later + t * r
                    best[end] = max(best[end] or value, value)
        most = max(x for x in best if x is not None)
        if most >= sum(self.prices):
            raise InstanceError("prices", f"come to {float(sum(self.prices)):.9g}, stages to {float(most):.9g}")
        return self.threshold / (1 + SLACK) if any(self.seconds) else inf

    def _held(self, problem: Any, of: tuple[int, ...], room: Fraction) -> list[list[list[Fraction]]]:
        """Return what a device holds at most besides w T r, by row of the menu, count of samples and weight w."""
        once, kept = problem.need()
        found = []
        for rows in zip(*(exact(x) for x in (problem.seconds(), once, kept)), strict=True):
            total: list[list[Any]] = [[Fraction(0)] * len(self.prices) for _ in rows]
            for g, *own in zip(of, *rows, strict=True):
                for x, more in zip(total, own, strict=True):
                    x[g] += more
            able = [g for g, seconds in enumerate(total[0]) if seconds != inf]
            part = lcm(room.denominator, *(x.denominator for row in total[1:] for x in row))
            size, more = ([int(row[g] * part) for g in able] for row in total[1:])
            gains = [[self.prices[g] - w * total[0][g] for g in able] for w in self.seconds]
            sizes = [[a + v * b for a, b in zip(size, more, strict=True)] for v in self.samples]
            whole = [(lcm(*(x.denominator for x in row)), row) for row in gains]
            worth = [([int(x * unit) for x in row], unit) for unit, row in whole]
            found.append([[_packed(x, unit, size, int(room * part)) for x, unit in worth] for size in sizes])
        return found


def _packed(gains: list[int], unit: int, sizes: list[int], room: int) -> Fraction:
    """Return no less than what fits into the room, in units, at about the price u of a byte of what fills it up."""
    useful = [(gain, size) for gain, size in zip(gains, sizes, strict=True) if gain > 0]
    top, bottom, left = 0, 1, room
    for rate, size in sorted(((_ratio(*x), x[1]) for x in useful if x[1]), reverse=True):
        left -= size
        if left < 0:
            top, bottom = rate.as_integer_ratio()
            break
    return Fraction(top * room + sum(max(0, gain * bottom - top * size) for gain, size in useful), bottom * unit)


def _ratio(gain: int, size: int) -> float:
    try:
        return gain / size
    except OverflowError:
        return float_info.max
