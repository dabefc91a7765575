"""Policies that descend a potential, and FGD: fragmentation gradient descent (Weng et al., USENIX ATC 2023)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray

from .mix import Fragmentation, Mix
from .policy import Scored, hundredths
from .slots import GPU, Long, Need, Slots


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


TYPICAL = 0.95
"""The share of tasks whose kinds the authors' simulator expects: rare ones, each of a few tasks, are left out."""


class FGD(Gradient):
    """Take the node and GPU where the expected fragmentation over a mix of tasks grows least.

    Growth d, in GPUs, scores 1 / (1 + exp(d)) in whole hundredths, as in the authors' simulator; steps are finest, 0.04
    GPUs, where little changes. Of equals the first node is taken, which fills the fleet from its start. As there, the
    tasks expected are the most frequent kinds of the mix, their memory does not count, and to those without GPUs all
    that is free on GPUs is a fragment.
    """

    def __init__(self, mix: Mix) -> None:
        """Expect the typical tasks of `mix`."""
        super().__init__()
        self.mix = mix.typical(TYPICAL)
        self._bare = sum(p for k, p in zip(self.mix.needs, self.mix.share.tolist(), strict=True) if not k.grants)

    def potential(self, state: Slots) -> Potential:
        """Return the expected fragmentation, but for tasks without GPUs."""
        return Fragmentation(self.mix, state)

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the fragmentation with the best GPU in each."""
        growth, level = super().score(state, wanted, slots)
        # tasks without GPUs see fewer fragments wherever GPUs are taken; it moves the bounds of the hundredths
        return hundredths(1 / (1 + np.exp(growth - self._bare * wanted.gpu / GPU))), level
