"""GpuPacking: GPUs in use first, then nodes in use, then idle nodes."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .policy import Scored, tightest
from .slots import Slots
from .units import GPU, Long, Need


class GpuPacking(Scored):
    """Take GPUs that are in use if the task fits there, the fullest first; else idle ones of a node in use; else any.

    How full a GPU is counts in tenths. Of idle nodes the one with the fewest GPUs is taken. Tasks without GPUs go to
    the first node that has room (Weng et al., ATC 2023, and their simulator).
    """

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by their class: up to 9 for a GPU in use, 10 for an idle one, more on an idle node."""
        if not wanted.grants:
            return np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)
        free = state.free[slots]
        level = tightest(free, wanted.share)
        gpus = (free >= 0).sum(axis=1)
        idle = (free == GPU).sum(axis=1) == gpus
        return np.where(idle, 10.0 + gpus, level * 10 // GPU), level
