"""First fit: the first node that fits, and its first GPU that fits."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.task import Task

from .policy import Choice, Scored
from .slots import Slots
from .state import State
from .units import Long, Need, need


class FirstFit(Scored):
    """Take the first node, in the order of the fleet, and its first GPUs."""

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score all slots alike: which comes first changes with their members."""
        return np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)

    def choose(self, state: State, task: Task) -> Choice | None:
        """Return a node and its GPUs, or None if the task fits nowhere."""
        wanted = need(task)
        slots = np.flatnonzero(self.refresh(state, wanted).score == 0)
        if not len(slots):
            return None
        node = int(state.first[slots].min())
        fitting = np.flatnonzero(state.share[node] >= wanted.share) if wanted.grants else np.zeros(0, dtype=np.int64)
        return node, tuple(fitting[: wanted.grants].tolist())
