"""GpuClustering: tasks of one kind of GPU request together (Xiao et al., Gandiva, OSDI 2018)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .policy import Scored, free_gpus, tightest
from .slots import Slots
from .state import kind_of
from .units import Long, Need


class GpuClustering(Scored):
    """Take a node with tasks of the same kind only; else with others too; else one without GPU tasks; else any.

    Kinds of request are a share, one GPU, two GPUs and so on. Among equals, the node with the fewest GPUs free, counted
    in 25 steps, and the fullest GPU that fits. Tasks without GPUs go to the first node that has room (Weng et al.,
    ATC 2023, and their simulator).
    """

    kinds = True

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by their class and, within it, the GPUs in use."""
        if not wanted.grants:
            return np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)
        marks, own = state.marks[slots], 1 << kind_of(wanted)
        there = np.where(marks == own, 0, np.where(marks & own, 1, np.where(marks == 0, 2, 3)))
        used = np.floor(25 * (1 - free_gpus(state, slots) / state.free.shape[1]) + 1e-9)
        return 26.0 * there - used, tightest(state.free[slots], wanted.share)
