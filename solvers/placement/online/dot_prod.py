"""DotProd: how what is left and what is needed line up (Grandl et al., Tetris, SIGCOMM 2014)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .policy import Scored, free_gpus, hundredths, tightest
from .slots import Slots
from .units import GPU, Long, Need


class DotProd(Scored):
    """Take the node with the least dot product of (cores, GPUs) left and needed, and the fullest GPU that fits.

    Least is what Weng et al. (ATC 2023) call DotProd: tasks go where little is left. Each resource is measured in the
    most that a node of the fleet has of it, and scores are whole, up to 100, as in their simulator.
    """

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the dot product."""
        return hundredths(1 - aligned(state, wanted, slots)), tightest(state.free[slots], wanted.share)


class Tetris(Scored):
    """Take the node with the greatest dot product, as Tetris does: the peaks of the task where the node has most."""

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the dot product."""
        return hundredths(aligned(state, wanted, slots)), tightest(state.free[slots], wanted.share)


def aligned(state: Slots, wanted: Need, slots: Long) -> FloatArray:
    """Return half the dot product of (cores, GPUs) left in each slot and needed, from 0 to 1, float64 (k,)."""
    most = np.maximum(state.specs.max(axis=0), 1)
    cores = (state.cpu[slots] / most[2]) * (wanted.cpu / most[2])
    gpus = (free_gpus(state, slots) / most[1]) * (wanted.gpu / GPU / most[1])
    return np.asarray((cores + gpus) / 2)
