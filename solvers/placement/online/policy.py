"""What a policy is, and the index by which scores of slots outlive a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.job import Task

from .state import GPU, FreeState, Long, Need, Slots, need

Choice = tuple[int, tuple[int, ...]]
"""A node and its GPUs."""

CLASSES = 1024
"""Needs whose scores are kept; the one kept longest goes first."""


class TaskPolicy(Protocol):
    """Chooses where a task goes, seeing what is there and never what comes."""

    def choose(self, state: FreeState, task: Task) -> Choice | None:
        """Return a node and its GPUs, or None if, and only if, the task fits nowhere; `state` stays as it is."""
        ...


@dataclass(slots=True)
class _Scores:
    score: FloatArray
    level: Long
    read: int


class Scored:
    """A policy that gives each slot a score and takes the least; subclasses say which by `score`.

    Scores are kept for each need. A decision scores only the slots that the log of the state names since the last
    decision for the same need. Of equals it takes the first node of the fleet.
    """

    kinds = False
    """Whether the policy needs `FreeState.kinds`."""

    def __init__(self) -> None:
        self._state: FreeState | None = None
        self._known: dict[Need, _Scores] = {}

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Return a score for slots, int64 (k,), in which the task fits: float64 (k,), less is better.

        And int64 (k,), how much is free on the GPU that it would share; of no meaning for tasks that share no GPU.
        """
        raise NotImplementedError

    def choose(self, state: FreeState, task: Task) -> Choice | None:
        """Return a node of the slot with the least score and the GPUs there, or None if the task fits nowhere."""
        wanted = need(task)
        known = self.refresh(state, wanted)
        least = known.score.min()
        if least == np.inf:
            return None
        tied = np.flatnonzero(known.score <= least + 1e-9 * abs(least))
        slot = int(tied[np.argmin(state.first[tied])])
        node = state.members[slot][0]
        return node, state.gpus(node, wanted, int(known.level[slot]))

    def refresh(self, state: FreeState, wanted: Need) -> _Scores:
        """Return the scores of all slots, infinite where the task does not fit; score those that are new."""
        if state is not self._state:
            self._state, self._known = state, {}
        known, end = self._known.get(wanted), state.log.end
        if known is not None and known.read == end:
            return known
        changed = None if known is None else state.log.since(known.read)
        if known is None or changed is None:
            m = len(state.first)
            known = _Scores(np.full(m, np.inf), np.zeros(m, dtype=np.int64), end)
            while len(self._known) >= CLASSES:
                del self._known[next(iter(self._known))]
            self._known[wanted] = known
            changed = np.arange(m)
        else:
            known.read = end
            known.score[changed] = np.inf
        changed = changed[state.first[changed] < len(state.first)]
        changed = changed[state.fits(wanted, changed)]
        if len(changed):
            known.score[changed], known.level[changed] = self.score(state, wanted, changed)
        return known


def tightest(free: Long, share: int) -> Long:
    """Return the least free share of at least `share`, int64 (k,); rows of `free`, (k, g), descend and have one."""
    last = (free >= share).sum(axis=1) - 1
    return np.asarray(np.take_along_axis(free, last[:, None], axis=1)[:, 0])


def free_gpus(state: Slots, slots: Long) -> FloatArray:
    """Return the GPUs free in each slot, shares added up, float64 (k,)."""
    return np.asarray(np.maximum(state.free[slots], 0).sum(axis=1) / GPU)


def hundredths(goodness: FloatArray) -> FloatArray:
    """Return a score of 0 to -100 for what is good from 0 to 1: Kubernetes' plugins give whole numbers, up to 100."""
    return np.asarray(-np.floor(100 * goodness + 1e-9))
