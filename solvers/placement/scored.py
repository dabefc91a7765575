"""Policies for single tasks, worker by worker for gangs: the scores of `online`, on nodes as a placement has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement import Demand, Task

from .online.fgd import FGD
from .online.mix import Mix
from .online.policies import DotProd, GpuClustering, GpuPacking
from .online.policy import Scored
from .online.slots import GPU, MOST, Long, Need, accepting, cores, fitting, hardware_of, need
from .online.state import kind_of
from .policies import Offer, Policy, spread
from .prepare import Batch
from .state import State

_LAST = 1e9
"""The score of a node that has room only if its shares are packed anew."""


class View:
    """Nodes as policies for single tasks see them, `online.slots.Slots` of one node each.

    Args:
        batch: the problem; `read` takes what is free from a placement of it.
    """

    def __init__(self, batch: Batch) -> None:
        fleet = self._fleet = batch.problem.fleet
        self.specs, self.hardware = hardware_of(fleet)
        usable = np.asarray(fleet.usable)
        self.count = np.bincount(self.hardware[usable], minlength=len(self.specs)).astype(np.int64)
        self._column = np.arange(max(1, int(fleet.gpus.max())))
        self._gpus = fleet.gpus[:, None]
        self._needs = [_need(job.worker) for job in batch.jobs]
        self.free = self.cpu = self.memory = self.marks = np.zeros(0, dtype=np.int64)

    def accepts(self, wanted: Need) -> BoolArray:
        """Return which hardware has a GPU type that the task accepts, bool (len(specs),)."""
        return accepting(self._fleet, self.specs, wanted)

    def read(self, state: State) -> None:
        """Take what is free from a placement under construction."""
        idle = np.where(self._column < state.free_gpu[:, None], GPU, 0)
        self.free = np.where(self._column < self._gpus, idle, -1).astype(np.int64)
        for node in state.held:
            free = [int(x * GPU + 1e-3) for x in state.idle(node)]
            self.free[node, : self._gpus[node, 0]] = 0
            self.free[node, : len(free)] = free
        self.cpu = cores(np.maximum(state.free_cpu, 0.0))
        self.memory = np.clip(state.free_memory, 0.0, MOST).astype(np.int64)
        self.marks = np.zeros(len(self.cpu), dtype=np.int64)
        for node, here in state.at.items():
            for j, (w, _) in here.items():
                if w and self._needs[j].grants:
                    self.marks[node] |= 1 << kind_of(self._needs[j])

    def take(self, node: int, wanted: Need, level: int) -> None:
        """Put a task on a node where it fits, on a GPU with `level` free if it shares one."""
        row = self.free[node]
        whole = np.flatnonzero(row == (GPU if wanted.whole else level))[: wanted.grants]
        row[whole] -= wanted.share
        self.free[node] = -np.sort(-row)
        self.cpu[node] -= wanted.cpu
        self.memory[node] -= wanted.memory
        if wanted.grants:
            self.marks[node] |= 1 << kind_of(wanted)


def scored(make: Callable[[Batch], Scored]) -> Policy:
    """Return the policy for gangs that gives each worker the node with the least score, ties to the first.

    Args:
        make: the policy for single tasks; what it learns of a batch is kept as long as that is.
    """
    known: WeakKeyDictionary[Batch, tuple[View, Scored]] = WeakKeyDictionary()

    def policy(offer: Offer, degree: int) -> dict[int, int]:
        state, room = offer.state, offer.room
        if state.batch not in known:
            known[state.batch] = View(state.batch), make(state.batch)
        view, scores = known[state.batch]
        view.read(state)
        wanted = _need(state.batch.jobs[offer.job].worker)
        level = np.zeros(len(room), dtype=np.int64)
        start = np.full(len(room), _LAST)

        def rate(nodes: Long) -> None:
            able = nodes[fitting(view, wanted, nodes)]
            start[nodes] = _LAST
            if len(able):
                start[able], level[able] = scores.score(view, wanted, able)

        def again(node: int, count: int) -> float:
            if start[node] < _LAST:
                view.take(node, wanted, int(level[node]))
                rate(np.array([node]))
            return float(start[node])

        rate(np.flatnonzero(room))
        return spread(again, start.copy(), room, degree)

    return policy


def _need(worker: Demand) -> Need:
    return need(Task(replace(worker, nic=0.0)))


def _mix(batch: Batch) -> Mix:
    """Return the tasks that the problem expects."""
    expected = batch.problem.expected()
    needs = tuple(need(Task(replace(x.task.demand, nic=0.0), x.task.gpu_types)) for x in expected)
    return Mix(needs, np.array([x.share for x in expected]))


dot_prod = scored(lambda batch: DotProd())
gpu_packing = scored(lambda batch: GpuPacking())
gpu_clustering = scored(lambda batch: GpuClustering())
fgd = scored(lambda batch: FGD(_mix(batch)))
