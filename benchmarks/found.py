"""What rows say: means over seeds, paired differences, the room between the best rule and the oracle; as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.simulator.metrics import interval

from .rows import Row


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of one policy less that of another, over the seeds that both ran.

    Attributes:
        seeds: how many.
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


class Found:
    """The newest rows; of a policy with weights only those of its newest weights.

    Args:
        rows: oldest first.
        alike: rows that must be of the same weights have the same.
    """

    def __init__(self, rows: Sequence[Row], alike: Callable[[Row], object]) -> None:
        newest = {alike(row): row.task.weights for row in rows}
        self.runs: dict[tuple[str, str], dict[int, Row]] = {}
        for row in rows:
            if row.task.weights == newest[alike(row)]:
                self.runs.setdefault(row.task[:2], {})[row.task.seed] = row
        self.cases = tuple(dict.fromkeys(case for case, _ in self.runs))

    def __bool__(self) -> bool:
        return bool(self.runs)

    def policies(self, case: str) -> list[str]:
        """Return who was run on a case."""
        return [policy for name, policy in self.runs if name == case]

    def of(self, case: str, policy: str | None, figure: str = "mean_jct") -> dict[int, float]:
        """Return a figure by seed, where it is known."""
        rows = self.runs.get((case, policy or ""), {})
        return {seed: row.figures[figure] for seed, row in rows.items() if figure in row.figures}

    def one(self, case: str, policy: str, figure: str = "mean_jct", usual: float = np.nan) -> float:
        """Return a figure of the first seed, `usual` if there is none."""
        return next(iter(self.of(case, policy, figure).values()), usual)

    def mean(self, case: str, policy: str | None, figure: str = "mean_jct") -> float | None:
        """Return the mean of a figure over the seeds, None if there is none."""
        values = self.of(case, policy, figure)
        return float(np.mean(list(values.values()))) if values else None

    def apart(self, case: str, policy: str, other: str | None, figure: str = "mean_jct") -> Difference | None:
        """Return by how much `policy` differs from `other`, None if no seed has both."""
        mine, others = self.of(case, policy, figure), self.of(case, other, figure)
        pairs = np.array([(x, others[seed]) for seed, x in mine.items() if seed in others])
        if not len(pairs):
            return None
        return Difference(len(pairs), *interval(pairs[:, 0] - pairs[:, 1]), float(pairs[:, 1].mean()))

    def best(self, case: str, policies: Iterable[str], figure: str = "mean_jct") -> str | None:
        """Return which of some policies has the least mean, chosen in hindsight."""
        means = {p: x for p in policies if (x := self.mean(case, p, figure)) is not None}
        return min(means, key=lambda p: means[p]) if means else None

    def room(self, case: str, policy: str, rules: Iterable[str], oracle: str | None) -> str:
        """Return the share of the way from the best rule to the oracle that a policy goes, on seeds that all have."""
        ends = [self.of(case, p) for p in (self.best(case, rules), policy, oracle)]
        both = set.intersection(*(set(x) for x in ends))
        rule, mine, most = (sum(x[seed] for seed in both) for x in ends)
        return f"{(rule - mine) / (rule - most):.0%}" if most < rule else ""


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    first, *rows = (f"| {' | '.join(cells)} |" for cells in [head, *lines])
    return "\n".join([first, "|---" + "|---:" * (len(head) - 1) + "|", *rows])


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
