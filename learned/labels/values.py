"""What was found out about the actions of a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray, require_number
from gangplan.solvers.result import OPTIMAL_GAP

LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Tolerances, as shares of the best value of the state; the last one is what `near` means."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What the a actions of a state are worth.

    Attributes:
        objective: of the best completion of the state that is known.
        bound: proved: no completion is better; 0 if nothing is known.
        decision, action: int32 (a,).
        value: float64 (a,), objective of the best completion found that takes the action, nan if none is within the
            last level.
        lower: float64 (a,), proved: no completion that takes it is better; inf if there is none.
        plans: those of the values, each with its objective, the best one first.
    """

    objective: float
    bound: float
    decision: IntArray
    action: IntArray
    value: FloatArray
    lower: FloatArray
    plans: tuple[tuple[Any, float], ...]

    @property
    def proved(self) -> bool:
        """Whether the objective is that of the best completion."""
        return self.objective <= self.bound * (1 + OPTIMAL_GAP)

    @property
    def regret(self) -> FloatArray:
        """What taking each action costs, as a share of the objective, float64 (a,); inf where there is no plan with it.

        Of an action without a value it is what is proved: at least that, the last level mostly. Where nothing is, for
        want of time, it is nan: such an action may be as good as any, and is to be left out of a loss.
        """
        worth = np.where(np.isnan(self.value), self.lower, self.value)
        cost = np.maximum(worth / self.objective - 1 if self.objective > 0 else worth - self.objective, 0.0)
        return np.where(np.isnan(self.value) & (cost <= OPTIMAL_GAP), np.nan, cost)


def up_to(near: float) -> tuple[float, ...]:
    """Return the levels of `LEVELS` below `near`, then `near`.

    Raises:
        InstanceError: if it is no number from 0 on.
    """
    require_number(near, "near")
    return (*(level for level in LEVELS if level < near), near)
