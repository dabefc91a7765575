"""Heuristics that the literature names, as rivals and lessons: rules for gangs, and scores for single tasks.

A score of `online` places a gang worker by worker, on nodes as a placement has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from weakref import WeakKeyDictionary

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.placement import Demand, Task

from .online.fgd import FGD, TaskMix
from .online.policies import GpuClustering, GpuPacking, Weighed, aligned
from .online.policy import Scored
from .online.state import GPU, MOST, Long, Need, Slots, cores, fitting, kind_of, need
from .policies import Offer, Policy, around, take
from .prepare import Indices, PreparedBatch
from .state import PlacementState

_LAST = 1e9
"""The score of a node that has room only if its shares are packed anew."""


def spread(score: Callable[[int, int], float], start: FloatArray, room: IntArray, degree: int) -> dict[int, int]:
    """Return node -> workers: one worker at a time to the node of the lowest score, ties to the first.

    Args:
        score: of a node once it has so many of the workers; not less than with fewer of them.
        start: the scores with none, (m,).
        room: how many workers each node can take, (m,).
    """
    nodes = np.flatnonzero(room)
    if len(nodes) > degree:
        # each of the best so many is taken once before any other is
        last = np.partition(start[nodes], degree - 1)[degree - 1]
        nodes = nodes[start[nodes] <= last]
        nodes = nodes[np.argsort(start[nodes], kind="stable")[:degree]]
    heap = list(zip(start[nodes].tolist(), nodes.tolist(), strict=True))
    heapify(heap)
    chosen: dict[int, int] = {}
    for _ in range(degree):
        _, node = heappop(heap)
        chosen[node] = chosen.get(node, 0) + 1
        if chosen[node] < room[node]:
            heappush(heap, (score(node, chosen[node]), node))
    return chosen


def nearest_by_size(offer: Offer, degree: int) -> dict[int, int]:
    """Take the idle GPUs nearest to a node that the size of the gang picks (TopDRL).

    One GPU: the emptiest node of the rack with the fewest idle GPUs; two to four: the node that is filled best, or
    the emptiest there is; more: the emptiest node of the rack with the most.
    """
    gpus, free, room = degree * int(offer.state.batch.each[offer.job]), offer.free, offer.room
    if 1 < gpus <= 4:
        able = np.flatnonzero(room >= degree)
        seed = int(able[np.argmin(free[able])]) if len(able) else int(np.argmax(room))
    else:
        racks, idle = _idle(offer)
        rack = racks[int(np.argmin(idle) if gpus <= 1 else np.argmax(idle))]
        inside = np.flatnonzero((offer.tree.group[1] == rack) & (room > 0))
        seed = int(inside[np.argmax(free[inside])])
    return around(offer, seed, degree)


def nearest_to_centre(offer: Offer, degree: int) -> dict[int, int]:
    """Take the idle GPUs nearest to the middle one of the rack that has the most of them (TopDRL)."""
    racks, idle = _idle(offer)
    group, room = offer.tree.group, offer.room
    inside = np.flatnonzero((group[1] == racks[int(np.argmax(idle))]) & (room > 0))
    reached = np.cumsum(room[inside])
    seed = int(inside[np.searchsorted(reached, (reached[-1] + 1) // 2)])
    nodes = np.arange(len(room))
    apart = (group != group[:, seed][:, None]).sum(axis=0)
    return take(np.lexsort([nodes, np.abs(nodes - seed), apart]), room, degree)


def _idle(offer: Offer) -> tuple[Indices, Indices]:
    nodes = np.flatnonzero(offer.room)
    racks, inverse = np.unique(offer.tree.group[1][nodes], return_inverse=True)
    return racks, np.bincount(inverse, weights=offer.room[nodes]).astype(np.int32)


def load_balance(offer: Offer, degree: int) -> dict[int, int]:
    """Give each worker the node whose share of GPUs in use, or of cores if that is more, is least."""
    state = offer.state
    fleet, demand = state.batch.problem.fleet, state.batch.jobs[offer.job].worker
    gpus, cores = np.maximum(fleet.gpus, 1e-300), np.maximum(fleet.cpu, 1e-300)
    load = np.maximum(1 - state.free_gpu / gpus, 1 - state.free[0] / cores)

    def score(node: int, count: int) -> float:
        by_gpu = 1 - (state.free_gpu[node] - count * demand.gpu) / gpus[node]
        return float(max(by_gpu, 1 - (state.free[0, node] - count * demand.cpu) / cores[node]))

    return spread(score, load, offer.room, degree)


def pack(offer: Offer, degree: int) -> dict[int, int]:
    """Give each worker the node with the largest dot product of demand and free resources.

    Both are in shares of the largest node (Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM
    2014, section 3.2); there is no term for remote input, a gang reads none from its nodes.
    """
    state = offer.state
    fleet, demand = state.batch.problem.fleet, state.batch.jobs[offer.job].worker
    need = np.array([demand.gpu, demand.cpu, demand.memory, demand.nic])
    # of what no node has nobody who fits needs anything
    largest = np.array([float(x.max()) or 1.0 for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.nic)])
    weight = need / largest**2
    aligned = weight @ np.stack([state.free_gpu, *state.free])
    less = float(weight @ need)
    return spread(lambda node, count: count * less - float(aligned[node]), -aligned, offer.room, degree)


class NodesView(Slots):
    """Nodes as policies for single tasks see them, `online.state.Slots` of one node each, read from a placement."""

    def __init__(self, batch: PreparedBatch) -> None:
        fleet = batch.problem.fleet
        super().__init__(fleet)
        self.hardware = self.node_hardware
        self._column = np.arange(max(1, int(fleet.gpus.max())))
        self._gpus = fleet.gpus[:, None]
        self._needs = [_need(job.worker) for job in batch.jobs]
        self.free = self.cpu = self.memory = self.marks = np.zeros(0, dtype=np.int64)

    def read(self, state: PlacementState) -> None:
        """Take what is free from a placement under construction."""
        idle = np.where(self._column < state.free_gpu[:, None], GPU, 0)
        self.free = np.where(self._column < self._gpus, idle, -1).astype(np.int64)
        for node in state.held:
            free = [int(x * GPU + 1e-3) for x in state.idle(node)]
            self.free[node, : self._gpus[node, 0]] = 0
            self.free[node, : len(free)] = free
        self.cpu = cores(np.maximum(state.free[0], 0.0))
        self.memory = np.clip(state.free[1], 0.0, MOST).astype(np.int64)
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


def scored(make: Callable[[PreparedBatch], Scored]) -> Policy:
    """Return the policy for gangs that gives each worker the node with the least score, of one `make` a batch."""
    known: WeakKeyDictionary[PreparedBatch, tuple[NodesView, Scored]] = WeakKeyDictionary()

    def policy(offer: Offer, degree: int) -> dict[int, int]:
        state, room = offer.state, offer.room
        if state.batch not in known:
            known[state.batch] = NodesView(state.batch), make(state.batch)
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


def _mix(batch: PreparedBatch) -> TaskMix:
    expected = batch.problem.expected()
    needs = tuple(need(Task(replace(x.task.demand, nic=0.0), x.task.gpu_types)) for x in expected)
    return TaskMix(needs, np.array([x.share for x in expected]))


dot_prod = scored(lambda batch: Weighed(aligned))
gpu_packing = scored(lambda batch: GpuPacking())
gpu_clustering = scored(lambda batch: GpuClustering())
fgd = scored(lambda batch: FGD(_mix(batch)))
