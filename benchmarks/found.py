"""What rows of simulated policies say of a suite: means, paired differences, the room between best rule and oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from gangplan.instances import InstanceError
from gangplan.simulator.metrics import Difference, paired
from gangplan.simulator.metrics.paired import Run


class WeighedRun(Run, Protocol):
    """A run of a policy that may have weights."""

    @property
    def weights(self) -> str:
        """The first digits of their SHA-256, empty of a policy without."""


class Found:
    """The newest rows, a suite at a time; of a policy with weights only those of its newest weights."""

    def __init__(self, rows: Sequence[WeighedRun]) -> None:
        newest = {(row.workload, row.policy): row.weights for row in rows}
        kept = {(r.workload, r.policy, r.seed): r for r in rows if r.weights == newest[r.workload, r.policy]}
        self.rows: dict[str, list[WeighedRun]] = {}
        for row in kept.values():
            self.rows.setdefault(row.workload, []).append(row)

    def of(self, suite: str, policy: str, figure: str = "mean_jct") -> dict[int, float]:
        """Return a figure by seed."""
        return {row.seed: float(getattr(row, figure)) for row in self.rows.get(suite, ()) if row.policy == policy}

    def mean(self, suite: str, policy: str | None, figure: str = "mean_jct") -> float | None:
        """Return the mean of a figure over the seeds, None if there is none."""
        values = self.of(suite, policy or "", figure)
        return float(np.mean(list(values.values()))) if values else None

    def apart(self, suite: str, policy: str, other: str | None, figure: str = "mean_jct") -> Difference | None:
        """Return by how much `policy` differs from `other`, None if no seed has both."""
        try:
            return paired(self.rows.get(suite, ()), policy, other or "", figure)
        except InstanceError:
            return None

    def best(self, suite: str, policies: Iterable[str]) -> str | None:
        """Return which of some policies has the least mean JCT, chosen in hindsight."""
        means = {p: x for p in policies if (x := self.mean(suite, p)) is not None}
        return min(means, key=lambda p: means[p]) if means else None

    def room(self, suite: str, policy: str, rules: Iterable[str], oracle: str | None) -> str:
        """Return the share of the way from the best rule to the oracle that a policy goes, on seeds that all have."""
        ends = [self.of(suite, p or "") for p in (self.best(suite, rules), policy, oracle)]
        both = set.intersection(*(set(x) for x in ends))
        rule, mine, most = (sum(x[seed] for seed in both) for x in ends)
        return f"{(rule - mine) / (rule - most):.0%}" if most < rule else ""


def number(value: float | None) -> str:
    """Return a figure in three digits, whole from 100 on; empty if there is none."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(found: Difference | None) -> str:
    """Return a difference as a share with its interval, in bold letters if that leaves 0 out."""
    if found is None:
        return ""
    text = f"{100 * found.mean / found.base:+.1f}%"
    text += "" if found.margin is None else f" ± {100 * found.margin / found.base:.1f}"
    return f"**{text}**" if found.significant else text
