"""Fragmentation under a mix of tasks, and policies that descend a potential: FGD (Weng et al., USENIX ATC 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.lazy import OfLast
from gangplan.instances.placement.job import Task

from .policy import Scored, hundredths
from .state import GPU, Long, Need, Slots, need

CHUNK = 4_000_000
"""Comparisons done at once, which bounds the memory of a large cluster's first scores."""


@dataclass(frozen=True, slots=True)
class TaskMix:
    """Kinds of task and the share of each, float64, of all tasks, those without GPUs too; of no tasks, no kinds."""

    needs: tuple[Need, ...]
    share: FloatArray

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> TaskMix:
        """Count the kinds of task in a list."""
        count: dict[Need, int] = {}
        for task in tasks:
            wanted = need(task)
            count[wanted] = count.get(wanted, 0) + 1
        total = max(1, sum(count.values()))
        return cls(tuple(count), np.array(list(count.values()), dtype=np.float64) / total)

    def by_gpus(self) -> TaskMix:
        """Return the same kinds with the share of all GPUs asked for that each asks for, instead of that of tasks."""
        gpus = np.array([kind.gpu for kind in self.needs], dtype=np.float64) * self.share
        return TaskMix(self.needs, gpus / max(gpus.sum(), 1e-300))

    def typical(self, part: float) -> TaskMix:
        """Return the fewest kinds that make up `part` of all tasks, told apart by GPUs and cores alone, as a mix.

        They need no memory. Of kinds that come equally often the one with more cores is taken first.
        """
        share: dict[Need, float] = {}
        for kind, p in zip(self.needs, self.share.tolist(), strict=True):
            bare = replace(kind, memory=0)
            share[bare] = share.get(bare, 0.0) + p
        kinds = sorted(share, key=lambda k: (share[k], k.cpu, k.share, k.grants, k.gpu_types), reverse=True)
        amount = np.array([share[k] for k in kinds])
        few = 1 + int(np.searchsorted(amount.cumsum(), (part - 1e-9) * amount.sum()))
        return TaskMix(tuple(kinds[:few]), amount[:few] / max(amount[:few].sum(), 1e-300))


class NodeFragments:
    """Expected fragmentation of nodes under a mix (Weng et al., ATC 2023, section 4).

    For a kind k of task, the fragment of node n is all that is free on its GPUs if k does not fit n, and otherwise what
    is free on GPUs that each have less than k's share free: F_n(k). Expected fragmentation is F_n = sum_k p_k F_n(k),
    here over the kinds that ask for GPUs: for others all of n is a fragment, before and after.

    Kinds that ask for the same GPUs differ in cores and memory only. So F_n = P G_n - sum_r W_r(cores, memory) U_r,
    with P the probability of a task with GPUs, G_n what is free, r the GPU requests, W_r the probability of r with at
    most these cores and this memory, and U_r what is free on GPUs that suffice r, 0 if there are too few of them. W_r
    is a table over the cores and amounts of memory in the mix, one for each hardware.
    """

    def __init__(self, mix: TaskMix, state: Slots) -> None:
        """Tabulate the mix for the GPU types of a cluster."""
        kinds = [(k, p) for k, p in zip(mix.needs, mix.share.tolist(), strict=True) if k.grants]
        self.asked = sum(p for _, p in kinds)
        requests = sorted({(k.grants, k.share) for k, _ in kinds})
        self.grants = np.array([r[0] for r in requests], dtype=np.int64)
        self.shares = np.array([r[1] for r in requests], dtype=np.int64)
        self.cpus = np.unique(np.array([k.cpu for k, _ in kinds], dtype=np.int64))
        self.memories = np.unique(np.array([k.memory for k, _ in kinds], dtype=np.int64))
        row = {r: i for i, r in enumerate(requests)}
        table = np.zeros((len(state.specs), len(self.cpus) + 1, len(self.memories) + 1, len(requests)))
        for kind, p in kinds:
            c, m = np.searchsorted(self.cpus, kind.cpu), np.searchsorted(self.memories, kind.memory)
            table[state.accepts(kind), c + 1, m + 1, row[kind.grants, kind.share]] += p
        self.table = table.cumsum(axis=1).cumsum(axis=2)

    def __call__(self, hardware: Long, cpu: Long, memory: Long, free: Long) -> FloatArray:
        """Return what is expected for each node, GPUs, (k,); `hardware`: rows of `Slots.specs`; `free` in any order."""
        step = max(1, CHUNK // max(1, free.shape[1] * len(self.shares)))
        parts = [slice(i, i + step) for i in range(0, len(free), step)]
        return np.concatenate([np.zeros(0), *(self._part(hardware[p], cpu[p], memory[p], free[p]) for p in parts)])

    def _part(self, hardware: Long, cpu: Long, memory: Long, free: Long) -> FloatArray:
        shares = np.maximum(free, 0) / GPU
        suffices = free[:, None, :] >= self.shares[None, :, None]
        usable = np.einsum("krg,kg->kr", suffices, shares)
        usable[suffices.sum(axis=2) < self.grants] = 0.0
        c = np.searchsorted(self.cpus, cpu, side="right")
        m = np.searchsorted(self.memories, memory, side="right")
        fits = self.table[hardware, c, m]
        return np.asarray(self.asked * shares.sum(axis=1) - (fits * usable).sum(axis=1))


class Potential(Protocol):
    """What one does not want of nodes, as a function of what is free on them."""

    def __call__(self, hardware: Long, cpu: Long, memory: Long, free: Long) -> FloatArray:
        """Return it for each node, float64 (k,); see `NodeFragments`."""
        ...


class Gradient(Scored):
    """Take the node and GPU where the potential grows least; subclasses say which potential."""

    def __init__(self) -> None:
        """Begin without a potential: it is made for the state that is seen."""
        super().__init__()
        self._potential = OfLast(self.potential)

    def potential(self, state: Slots) -> Potential:
        """Return the potential for the hardware of a cluster."""
        raise NotImplementedError

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the potential with the best GPU in each."""
        potential, free = self._potential(state), state.free[slots]
        rows, columns = successors(free, wanted)
        after = free[rows]
        if columns is not None:
            after[np.arange(len(rows)), columns] -= wanted.share
        elif wanted.grants:
            whole = after == GPU
            after[whole & (whole.cumsum(axis=1) <= wanted.grants)] = 0
        hardware, cpu, memory = state.hardware[slots], state.cpu[slots], state.memory[slots]
        before = potential(hardware, cpu, memory, free)
        now = potential(hardware[rows], cpu[rows] - wanted.cpu, memory[rows] - wanted.memory, after)
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

    GPUs of a node with as much free are one way. `free`: int64 (k, g), descending; the task fits each row.
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

    def __init__(self, mix: TaskMix) -> None:
        """Expect the typical tasks of `mix`."""
        super().__init__()
        self.mix = mix.typical(TYPICAL)
        self._bare = sum(p for k, p in zip(self.mix.needs, self.mix.share.tolist(), strict=True) if not k.grants)

    def potential(self, state: Slots) -> Potential:
        """Return the expected fragmentation, but for tasks without GPUs."""
        return NodeFragments(self.mix, state)

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the fragmentation with the best GPU in each."""
        growth, level = super().score(state, wanted, slots)
        # tasks without GPUs see fewer fragments wherever GPUs are taken; it moves the bounds of the hundredths
        return hundredths(1 / (1 + np.exp(growth - self._bare * wanted.gpu / GPU))), level
