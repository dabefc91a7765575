"""Bounds by loads: what all devices have to do together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import classes_of
from .document import Certificate
from .exact import SLACK, weights


@dataclass(frozen=True, slots=True)
class SharesCertificate(Certificate):
    """Weigh the seconds and the bytes of all devices: the linear programme over shares of classes, by its dual.

    With a weight y_t of a second and m_t of a byte on a device of type t, any plan of objective Z has

        sum over classes g of min over options (t, p, b) of y_t p + m_t b
            <= sum over devices of y_t load + m_t memory <= Z sum n_t y_t + sum n_t m_t capacity_t

    whatever the weights are, as long as none is negative. A plan of stages has all replicas of a class among its loads.
    Hosts of a latency problem have no load that bounds Z: their seconds weigh nothing.

    Attributes:
        seconds: y_t of each device type of the cluster.
        bytes: m_t of each.
    """

    objectives: ClassVar[tuple[str, ...]] = ("throughput", "latency", "step", "stages")

    seconds: tuple[Fraction, ...]
    bytes: tuple[Fraction, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the least Z; `inf` if memory alone is too small."""
        classes = classes_of(problem)
        weights(self.seconds, len(classes.count), "seconds")
        weights(self.bytes, len(classes.count), "bytes")
        slack = SLACK * len(classes.of) * max(self.seconds) if problem.objective == "step" else Fraction(0)
        devices, room = slack, Fraction(0)
        for t, (count, limit) in enumerate(zip(classes.count, classes.capacity, strict=True)):
            if count is None and (self.seconds[t] or self.bytes[t]):
                raise InstanceError(f"seconds[{t}]", "weighs hosts, which run any number of ops at once")
            if self.bytes[t] and limit == inf:
                raise InstanceError(f"bytes[{t}]", "weighs memory that has no limit")
            devices += (count or 0) * self.seconds[t]
            room += (count or 0) * self.bytes[t] * Fraction(limit) if self.bytes[t] else 0
        total = Fraction(0)
        for options in classes.options:
            if not options:
                return inf  # no device runs it and has the memory
            total += min(self.seconds[t] * takes + self.bytes[t] * needs for t, takes, needs in options)
        if not devices:
            return inf if total > room else Fraction(0)
        return (total - room) / devices / (1 + SLACK)
