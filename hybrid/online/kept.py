"""Room kept for short jobs: how many GPUs jobs of each length may hold together."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

HOUR, DAY = 3600.0, 86400.0
LENGTHS = (HOUR, 6 * HOUR, DAY, 3 * DAY, 7 * DAY)
"""Seconds from which on a job belongs to the next class."""
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Of the GPUs, what the longest jobs may hold together: amounts for a lookahead to choose from; 1 keeps none."""


@dataclass(frozen=True, slots=True)
class Rule:
    r"""A job that is never stopped takes its GPUs from all that come while it runs; the longer, the more.

    Class k = 1, ..., K holds jobs that last at least ``lengths[k - 1]`` seconds. All jobs of classes k and above hold
    at most $1 - (1 - s)(k / K)^2$ of the GPUs that are up, where s is the share of the longest. A job that exceeds
    this alone runs when nobody else of these classes does.

    Attributes:
        lengths: seconds, ascending, K of them.
    """

    lengths: tuple[float, ...] = LENGTHS

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))
        for i, value in enumerate(self.lengths):
            require_number(value, f"lengths[{i}]", positive=True)
            if i and value <= self.lengths[i - 1]:
                raise InstanceError(f"lengths[{i}]", f"{value!r} does not ascend")

    def of(self, seconds: float) -> int:
        """Return the class of a job that lasts so long."""
        return bisect_right(self.lengths, seconds)

    def caps(self, share: float, gpus: int) -> list[int]:
        """Return how many of `gpus` the jobs of each class and those above may hold, (K + 1,)."""
        n = max(1, len(self.lengths))
        return [round((1 - (1 - share) * (k / n) ** 2) * gpus) for k in range(len(self.lengths) + 1)]


class Kept:
    """What the jobs of each class hold now.

    Attributes:
        rule: the classes.
        share: of the GPUs, what the longest may hold.
        used: GPUs held by jobs of each class and those above, (K + 1,).
    """

    def __init__(self, rule: Rule) -> None:
        self.rule, self.share = rule, 1.0
        self.used = [0] * (len(rule.lengths) + 1)
        self._caps: list[int] = []

    def aim(self, share: float, gpus: int) -> None:
        """Set the share, with so many GPUs up."""
        self.share, self._caps = share, self.rule.caps(share, gpus)

    def add(self, seconds: float, gpus: int) -> None:
        """Note that a job begins to hold GPUs, or gives them back where they are negative."""
        for k in range(self.rule.of(seconds) + 1):
            self.used[k] += gpus

    def allows(self, seconds: float, gpus: int) -> bool:
        """Return whether a job may take so many GPUs now."""
        if self.share >= 1:
            return True
        top = self.rule.of(seconds)
        return all(not self.used[k] or self.used[k] + gpus <= self._caps[k] for k in range(1, top + 1))
