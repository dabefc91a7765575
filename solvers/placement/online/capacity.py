"""How many workers of a kind each node and each part of the network could take: kept, renewed where nodes change."""

from __future__ import annotations

from copy import copy
from functools import lru_cache, partial
from math import ceil
from typing import NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement import Demand, Fleet, GangJob, SpeedModel

from ...nodes import most_workers
from ..prepare import GroupTree
from .shared import FleetParts, Shared, SharedGang
from .state import CPU, MOST, Long

ANY = 2**31 - 1
"""More than any node takes."""
PARTS = 256
"""Divisions of the fleet into parts that are kept."""


class Kind(NamedTuple):
    """What tells workers, or parameter servers, apart as far as room for them goes.

    Attributes:
        need: GPUs, millionths of a core, bytes, bytes/s of the NIC.
        model: the model type, `None` for tasks that need no GPU.
        where: labels, taints and GPU types, see `GangJob.where`.
        most: how many a node may have.
        alone: whether nobody else may be there.
        shared: what all workers of a gang share, if anything.
    """

    need: tuple[int, int, int, int]
    model: str | None
    where: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    most: int
    alone: bool
    shared: Shared | None = None

    @classmethod
    def workers(cls, job: GangJob) -> Kind:
        """Return the kind of the workers of a job."""
        model = job.model if job.worker.gpu else None
        shared = job.shared if isinstance(job, SharedGang) else None
        return cls(_need(job.worker), model, job.where, job.most_per_node or ANY, job.whole_nodes, shared)

    @classmethod
    def servers(cls, job: GangJob) -> Kind:
        """Return the kind of the parameter servers of a job."""
        return cls(_need(job.server), None, job.where, ANY, job.whole_nodes)


def demanded(demand: Demand) -> tuple[int, float, float, float]:
    """Return a demand in the units of `Kind.need`, not rounded."""
    return demand.grants, demand.cpu * CPU, demand.memory, demand.nic


def _need(demand: Demand) -> tuple[int, int, int, int]:
    """Return a demand in whole units, rounded up but for what floating point loses."""
    gpus, *others = demanded(demand)
    cpu, memory, nic = (ceil(min(need, MOST) - 1e-3) for need in others)
    return gpus, cpu, memory, nic


class NodeCapacity:
    """What is free on each of m nodes, in whole numbers, so that what was taken comes back to the digit.

    Attributes:
        vacant, whole: int64 (4, m), what is left, and what there is, of GPUs, cores, memory and NIC in the units of
            `Kind.need`.
        free: int64 (m,), idle GPUs, a view.
        taken: int64 (m,), jobs on the node.
        guarded: bool (m,), whether the job there wants the node for itself, or it is down.
        parts: returns the parts of the fleet, one of which has a gang whole that shares something.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel) -> None:
        for i, kind in enumerate(fleet.gpu_types):
            if kind not in speeds.gpu_types:
                raise InstanceError(f"fleet.gpu_types[{i}]", f"{kind!r} has no speeds")
        self.fleet, self.speeds = fleet, speeds
        amounts = np.stack([fleet.gpus, fleet.cpu * CPU, fleet.memory, fleet.nic])
        self.vacant: Long = np.floor(np.minimum(amounts, MOST) + 1e-3).astype(np.int64)
        self.whole: Long = self.vacant.copy()
        self.free: Long = self.vacant[0]
        self.taken = np.zeros(fleet.n_nodes, dtype=np.int64)
        self.guarded = np.zeros(fleet.n_nodes, dtype=bool)
        self.tree = GroupTree(fleet)
        self.parts = lru_cache(PARTS)(partial(FleetParts, fleet))

    def allowed(self, kind: Kind) -> BoolArray:
        """Return the nodes where such workers may be: usable, by labels, taints and types; its GPUs run the model."""
        fleet, speeds = self.fleet, self.speeds
        requires, tolerates, types = kind.where
        found = np.array(fleet.usable, dtype=bool) & fleet.admits(requires, tolerates)
        if kind.shared is not None and not kind.shared.possible(fleet):
            found[:] = False
        if kind.model is not None:
            if types:
                accepted = np.array([name in types for name in fleet.gpu_types], dtype=bool)
                found &= accepted[np.where(fleet.gpus > 0, fleet.gpu_type, 0)]
            if kind.model not in speeds.models:
                raise InstanceError("job.model", f"{kind.model!r} has no speed")
            rows = [speeds.gpu_types.index(name) for name in fleet.gpu_types]
            runs = np.isfinite(speeds.compute[rows, speeds.models.index(kind.model)])
            found &= (fleet.gpus > 0) & runs[np.where(fleet.gpus > 0, fleet.gpu_type, 0)]
        return found

    def workers(self, kind: Kind, allowed: BoolArray, nodes: Long) -> Long:
        """Return how many workers of a kind these nodes could take, int64 (k,)."""
        most = np.where(allowed[nodes] & ~self.guarded[nodes], kind.most, 0)
        if kind.alone:
            most[self.taken[nodes] > 0] = 0
        return most_workers(self.vacant, kind.need, most, nodes)


class Capacity:
    """The `Vacancy` for one kind of worker: room of nodes, int64 (m,), and sums of each level above, (groups,).

    `free`: idle GPUs of each node, int64 (m,), a view.
    """

    def __init__(self, nodes: NodeCapacity, kind: Kind) -> None:
        self.nodes, self.kind, self.tree = nodes, kind, nodes.tree
        self.free = nodes.free
        self._allowed = nodes.allowed(kind)
        self.room = nodes.workers(kind, self._allowed, np.arange(nodes.fleet.n_nodes))
        self.sums = [np.bincount(group, weights=self.room).astype(np.int64) for group in nodes.tree.group[1:]]
        self._parts = None if kind.shared is None else nodes.parts(kind.shared)
        self._held = None if self._parts is None else np.bincount(self._parts.part, self.room)

    def renew(self, changed: Long) -> None:
        """Look again at these nodes, each named once."""
        self._set(changed, self.nodes.workers(self.kind, self._allowed, changed))

    def without(self, blocked: Long) -> Capacity:
        """Return a copy with no room on these nodes."""
        return self.with_room(blocked, np.zeros(len(blocked), dtype=np.int64))

    def with_room(self, nodes: Long, room: Long) -> Capacity:
        """Return a copy with other room on these nodes."""
        other = copy(self)
        other.room, other.sums = self.room.copy(), [total.copy() for total in self.sums]
        other._held = None if self._held is None else self._held.copy()
        other._set(nodes, room)
        return other

    @property
    def total(self) -> int:
        """How many workers of one gang the whole cluster could take."""
        if self._held is not None:
            return int(self._held.max(initial=0))
        return int(self.sums[-1].sum())

    def chosen(self, workers: int) -> Capacity:
        """Return the room of the part that takes so many workers of one gang, itself if nothing is to be shared."""
        if self._parts is None:
            return self
        others = np.ones(len(self.room), dtype=bool)
        others[self._parts.choose(self.room, workers)] = False
        other = self.without(np.flatnonzero(others))
        other._parts = other._held = None
        return other

    def _set(self, nodes: Long, room: Long) -> None:
        more = room - self.room[nodes]
        self.room[nodes] = room
        for group, total in zip(self.nodes.tree.group[1:], self.sums, strict=True):
            np.add.at(total, group[nodes], more)
        if self._parts is not None and self._held is not None:
            np.add.at(self._held, self._parts.part[nodes], more)
