"""A state on the way to a pipeline, and what is known of the actions in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import PartitionPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.run import OPTIMAL_GAP

Action = tuple[int, int]
"""(group of ops, stage that it is in)."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a policy has decided so far: the stages of the first `depth` groups of `plan`.

    Attributes:
        plan: any feasible plan; what it does later only says that the state can be completed, and how well.
        depth: 0 is the empty state.
    """

    plan: PartitionPlan
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What the a actions of a state are worth.

    Attributes:
        objective: of the best completion of the state that is known.
        bound: proved: no completion is better; 0 if nothing is known.
        decision, action: int32 (a,).
        value: float64 (a,), objective of the best completion found that takes the action, nan if none is within the
            last level.
        lower: float64 (a,), proved: no completion that takes it is better.
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
