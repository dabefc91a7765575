"""Look up blocking rates in the rows of benchmarks/pacml.csv, and compare policies that met the same jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gangplan.simulator.metrics.compare import interval
from gangplan.simulator.ramp import DISTRIBUTIONS

from .pacml_rows import PROTOCOL, PacmlRow
from .pacml_suites import Cell

ALL = "".join(DISTRIBUTIONS)
"""The distributions, a letter each."""


class Spread(NamedTuple):
    """A mean over seeds and half the width of its 95% interval by Student's t, None of one seed."""

    mean: float
    margin: float | None


class Found:
    """The newest rates by policy, distribution and seed.

    Of a policy with weights only rows of its newest weights count: rates of two policies are not averaged.
    """

    def __init__(self, rows: Iterable[PacmlRow]) -> None:
        self.rows = [row for row in rows if row.protocol == PROTOCOL]
        newest = {(row.units, row.policy): row.weights for row in self.rows}
        self._rates: dict[tuple[object, ...], dict[int, float]] = {}
        for row in self.rows:
            if row.weights == newest[row.units, row.policy]:
                key = row.units, row.models, row.cluster, row.load, row.jobs, row.policy, row.distribution
                self._rates.setdefault(key, {})[row.seed] = row.blocked_or_running

    def rates(self, cell: Cell, policy: str, distributions: str) -> dict[int, float]:
        """Return the published blocking rate by seed, the mean over some distributions; only of seeds that have all."""
        every = [self._rates.get((*cell.place, policy, d), {}) for d in distributions]
        seeds = sorted(set.intersection(*(set(x) for x in every)))
        return {seed: float(np.mean([x[seed] for x in every])) for seed in seeds}

    def spread(self, cell: Cell, policy: str, distributions: str) -> Spread | None:
        """Return the mean of the rates over the seeds, None if there is none."""
        found = self.rates(cell, policy, distributions)
        return Spread(*interval(np.array(list(found.values())))) if found else None

    def apart(self, cell: Cell, policy: str, other: str, distributions: str) -> Spread | None:
        """Return the mean of the differences seed by seed, `policy` less `other`; None if no seed has both."""
        a, b = (self.rates(cell, name, distributions) for name in (policy, other))
        both = [a[seed] - b[seed] for seed in a if seed in b]
        return Spread(*interval(np.array(both))) if both else None

    def best(self, cell: Cell, policies: Sequence[str], distributions: str) -> str | None:
        """Return which policy has the least mean rate, chosen in hindsight; None if none was run."""
        means = {p: x.mean for p in policies if (x := self.spread(cell, p, distributions)) is not None}
        return min(means, key=lambda p: means[p]) if means else None
