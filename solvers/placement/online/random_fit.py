"""Random: any node that fits, any GPU that fits."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.task import Task

from .policy import Choice, Scored
from .slots import Slots
from .state import State
from .units import Long, Need, need


class RandomFit(Scored):
    """Take a node at random among those that fit, and a GPU at random among its GPUs that fit."""

    def __init__(self, seed: int = 0) -> None:
        """Draw from a generator made from `seed`."""
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score all slots alike."""
        return np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)

    def choose(self, state: State, task: Task) -> Choice | None:
        """Return a node and its GPUs, or None if the task fits nowhere."""
        wanted = need(task)
        slots = np.flatnonzero(self.refresh(state, wanted).score == 0)
        if not len(slots):
            return None
        ends = np.cumsum([len(state.members[i]) for i in slots.tolist()])
        at = int(self.rng.integers(ends[-1]))
        k = int(np.searchsorted(ends, at, side="right"))
        nodes = state.members[slots[k]]
        node = nodes[at - int(ends[k])]  # counted from the end of the slot
        fitting = np.flatnonzero(state.share[node] >= wanted.share) if wanted.grants else np.zeros(0, dtype=np.int64)
        return node, tuple(self.rng.permutation(fitting)[: wanted.grants].tolist())
