"""BestFit: the node that has least left."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .policy import Scored, free_gpus, hundredths, tightest
from .slots import Slots
from .units import GPU, Long, Need


class BestFit(Scored):
    """Take the node where the weighted sum of what the task leaves is least, and the fullest GPU that fits.

    Each resource is measured in the most that a node of the fleet has of it. Weights of a half for cores and for GPUs
    and none for memory, and whole scores up to 100, are as in the simulator of Weng et al. (ATC 2023).
    """

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by what the task leaves in them."""
        return hundredths(1 - left(state, wanted, slots)), tightest(state.free[slots], wanted.share)


def left(state: Slots, wanted: Need, slots: Long) -> FloatArray:
    """Return the weighted sum of what the task leaves in each slot, from 0 to 1, float64 (k,)."""
    most = np.maximum(state.specs.max(axis=0), 1)
    cores = (state.cpu[slots] - wanted.cpu) / most[2]
    gpus = (free_gpus(state, slots) - wanted.gpu / GPU) / most[1]
    return np.asarray(0.5 * cores + 0.5 * gpus)
