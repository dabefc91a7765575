"""Differences of two policies on the same workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gangplan.instances import InstanceError

from .compare import interval


class Run(Protocol):
    """One policy on one workload; other attributes are its figures."""

    @property
    def policy(self) -> str:
        """Name of the policy."""

    @property
    def workload(self) -> str:
        """Name of the workload."""

    @property
    def seed(self) -> int:
        """Seed of the workload."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of one policy less that of another, over the workloads that both ran.

    Attributes:
        seeds: how many workloads.
        mean: of the differences.
        margin: half the width of the 95% interval of the mean, by Student's t; None of one seed.
        base: mean of the other policy's figure.
    """

    seeds: int
    mean: float
    margin: float | None
    base: float

    @property
    def significant(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.margin is not None and abs(self.mean) > self.margin


def paired(rows: Sequence[Run], a: str, b: str, figure: str = "mean_jct") -> Difference:
    """Return a figure of policy `a` less that of `b`, of workloads with a row of each.

    Raises:
        InstanceError: if there is no such workload, or no such figure.
    """
    if any(not hasattr(row, figure) for row in rows):
        raise InstanceError("figure", f"{figure!r} is none of these rows")
    of = {(row.policy, row.workload, row.seed): float(getattr(row, figure)) for row in rows}
    pairs = [(value, of[b, suite, seed]) for (p, suite, seed), value in of.items() if p == a and (b, suite, seed) in of]
    if not pairs:
        raise InstanceError("rows", f"have no workload that both {a!r} and {b!r} ran")
    first, second = np.array(pairs).T
    mean, margin = interval(first - second)
    return Difference(len(pairs), mean, margin, float(second.mean()))
