"""Policies that descend a potential: where a task adds least to it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray

from .policy import Scored
from .slots import Slots
from .units import GPU, Long, Need


class Potential(Protocol):
    """What one does not want of nodes, as a function of what is free on them."""

    def __call__(self, hardware: Long, cpu: Long, memory: Long, free: Long) -> FloatArray:
        """Return it for each node, float64 (k,); see `mix.Fragmentation`."""
        ...


class Gradient(Scored):
    """Take the node and GPU where the potential grows least; subclasses say which potential."""

    def __init__(self) -> None:
        """Begin without a potential: it is made for the first state that is seen."""
        super().__init__()
        self._potential: Potential | None = None
        self._of: Slots | None = None

    def potential(self, state: Slots) -> Potential:
        """Return the potential for the hardware of a cluster."""
        raise NotImplementedError

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the potential with the best GPU in each."""
        if self._potential is None or self._of is not state:
            self._potential, self._of = self.potential(state), state
        free = state.free[slots]
        rows, columns = successors(free, wanted)
        after = free[rows]
        if columns is not None:
            after[np.arange(len(rows)), columns] -= wanted.share
        elif wanted.grants:
            whole = after == GPU
            after[whole & (whole.cumsum(axis=1) <= wanted.grants)] = 0
        hardware, cpu, memory = state.hardware[slots], state.cpu[slots], state.memory[slots]
        before = self._potential(hardware, cpu, memory, free)
        now = self._potential(hardware[rows], cpu[rows] - wanted.cpu, memory[rows] - wanted.memory, after)
        growth = now - before[rows]
        if columns is None:
            return growth, np.zeros(len(slots), dtype=np.int64)
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        least = np.minimum.reduceat(growth, starts)
        # of GPUs that are equally good the fullest, which comes last
        good = np.flatnonzero(growth <= least[rows] + 1e-12)
        best = np.zeros(len(slots), dtype=np.int64)
        best[rows[good]] = columns[good]
        return least, free[np.arange(len(slots)), best]


def successors(free: Long, wanted: Need) -> tuple[Long, Long | None]:
    """Return the ways a task fits nodes: rows of `free` and, if it shares a GPU, the column of that GPU.

    GPUs of a node with as much free are one way.

    Args:
        free: int64 (k, g), free shares, descending; the task fits each row.
        wanted: what the task needs.
    """
    if wanted.whole or not wanted.grants:
        return np.arange(len(free)), None
    ways = free >= wanted.share
    ways[:, 1:] &= free[:, 1:] != free[:, :-1]
    rows, columns = np.nonzero(ways)
    return rows, columns
