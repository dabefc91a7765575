"""Policies for single tasks by name: each gives a score to every place where a task fits, and the least is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.placement.job import Task

from .fgd import FGD, TaskMix
from .policy import Choice, Scored, TaskPolicy, free_gpus, hundredths, tightest
from .state import GPU, FreeState, Long, Need, Slots, kind_of, need
from .stranding import Stranding


class FirstFit(Scored):
    """Take the first node, in the order of the fleet, and its first GPUs."""

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score all slots alike: which comes first changes with their members."""
        return np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)

    def choose(self, state: FreeState, task: Task) -> Choice | None:
        """Return a node and its GPUs, or None if the task fits nowhere."""
        wanted = need(task)
        slots = np.flatnonzero(self.refresh(state, wanted).score == 0)
        if not len(slots):
            return None
        node = self.pick(state, slots)
        fitting = np.flatnonzero(state.share[node] >= wanted.share) if wanted.grants else np.zeros(0, dtype=np.int64)
        return node, tuple(self.order(fitting)[: wanted.grants].tolist())

    def pick(self, state: FreeState, slots: Long) -> int:
        """Return the node to take, of slots in which the task fits."""
        return int(state.first[slots].min())

    def order(self, gpus: Long) -> Long:
        """Return the GPUs of a node that fit, those to take first."""
        return gpus


class RandomFit(FirstFit):
    """Take a node at random among those that fit, and a GPU at random among its GPUs that fit."""

    def __init__(self, seed: int = 0) -> None:
        """Draw from a generator made from `seed`."""
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def pick(self, state: FreeState, slots: Long) -> int:
        """Return any node of the slots."""
        ends = np.cumsum([len(state.members[i]) for i in slots.tolist()])
        at = int(self.rng.integers(ends[-1]))
        k = int(np.searchsorted(ends, at, side="right"))
        nodes = state.members[slots[k]]
        return int(nodes[at - int(ends[k])])  # counted from the end of the slot

    def order(self, gpus: Long) -> Long:
        """Return them in random order."""
        return np.asarray(self.rng.permutation(gpus))


class Weighed(Scored):
    """Take the node of which a measure is least, or greatest, and the fullest GPU that fits, or its emptiest.

    Each resource is measured in the most that a node of the fleet has of it. Weights of a half for cores and for GPUs
    and none for memory, and whole scores up to 100, are as in the simulator of Weng et al. (ATC 2023).

    Args:
        measure: of slots, from 0 to 1, float64 (k,): `left` or `aligned`.
    """

    def __init__(
        self, measure: Callable[[Slots, Need, Long], FloatArray], *, most: bool = False, emptiest: bool = False
    ) -> None:
        super().__init__()
        self._measure, self._most, self._emptiest = measure, most, emptiest

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the measure."""
        found, free = self._measure(state, wanted, slots), state.free[slots]
        level = free[:, 0] if self._emptiest else tightest(free, wanted.share)
        return hundredths(found if self._most else 1 - found), level


def left(state: Slots, wanted: Need, slots: Long) -> FloatArray:
    """Return the weighted sum of what the task leaves in each slot, from 0 to 1, float64 (k,)."""
    most = np.maximum(state.specs.max(axis=0), 1)
    cores = (state.cpu[slots] - wanted.cpu) / most[2]
    gpus = (free_gpus(state, slots) - wanted.gpu / GPU) / most[1]
    return np.asarray(0.5 * cores + 0.5 * gpus)


def aligned(state: Slots, wanted: Need, slots: Long) -> FloatArray:
    """Return half the dot product of (cores, GPUs) left in each slot and needed, from 0 to 1, float64 (k,)."""
    most = np.maximum(state.specs.max(axis=0), 1)
    cores = (state.cpu[slots] / most[2]) * (wanted.cpu / most[2])
    gpus = (free_gpus(state, slots) / most[1]) * (wanted.gpu / GPU / most[1])
    return np.asarray((cores + gpus) / 2)


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


TASK_POLICIES: Mapping[str, Callable[[TaskMix, int], TaskPolicy]] = {
    "random": lambda mix, seed: RandomFit(seed),
    "least_loaded": lambda mix, seed: Weighed(left, most=True, emptiest=True),
    "tetris": lambda mix, seed: Weighed(aligned, most=True),
    "dot_prod": lambda mix, seed: Weighed(aligned),
    "gpu_clustering": lambda mix, seed: GpuClustering(),
    "gpu_packing": lambda mix, seed: GpuPacking(),
    "best_fit": lambda mix, seed: Weighed(left),
    "first_fit": lambda mix, seed: FirstFit(),
    "fgd": lambda mix, seed: FGD(mix),
    "stranding": lambda mix, seed: Stranding(mix),
}
"""What makes each policy, from the mix of tasks to expect and the seed of random choices.

Tetris puts the peaks of a task where a node has most. DotProd, as Weng et al. call it, goes where little is left."""


def make_policy(name: str, mix: TaskMix, seed: int = 0) -> TaskPolicy:
    """Return a policy of `TASK_POLICIES` that has seen nothing yet; `mix` are the tasks to expect."""
    require_choice(name, "policy", TASK_POLICIES)
    return TASK_POLICIES[name](mix, seed)
