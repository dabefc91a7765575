"""What a scheduler is told when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from gangplan.instances.arrays import Checked, limited

EXPENSIVE = 2.0
"""Times its price that a stop has to be worth: who was stopped once is often stopped again."""
PATIENCE = 50.0
"""Times its longest expected seconds that a job waits until it is due."""
MAX_WAIT = 86400.0
"""Seconds that a job waits until it is due, if it is no longer than a tenth of them."""
LEAST = 10.0
"""Times its longest expected seconds before which `max_wait` makes no job due: a cluster can be busy for a day."""
DURATIONS = ("told", "history")
"""What is believed: the seconds that are given, of other jobs the history of those that finished; or that alone."""
STEEPEST = 8
"""The largest exponent of GPUs: beyond it, keys would leave the range of floating-point numbers."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings(Checked):
    """What a scheduler is told when it is made, see `Scheduler`; `ahead`: whether the lookahead chooses the order."""

    together: bool
    reserve: bool
    order: float = field(metadata={"most": STEEPEST})
    ahead: bool
    price: float | None
    patience: float = PATIENCE
    durations: str = limited("told", choices=DURATIONS)
    max_wait: float | None = MAX_WAIT
    grace: float = 0.0

    def due_after(self, seconds: float) -> float:
        """Return how long a job of so many seconds at most waits until it is due."""
        return min(self.patience * seconds, inf if self.max_wait is None else max(LEAST * seconds, self.max_wait))
