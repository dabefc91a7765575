"""What is free on every node, with nodes in the same state kept together in slots; needs in whole numbers."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement.fleet import Fleet
from gangplan.instances.placement.job import Demand, Task

Long = NDArray[np.int64]
GPU = 1_000_000
"""Millionths of a GPU; a share is rounded down, so that n shares of 1/n fit one GPU."""

CPU = 1_000_000
"""Millionths of a core; what a task needs is rounded up."""

MOST = 2.0**62
"""No amount is larger: what sums and 64 bits can hold."""


LOG = 50_000
"""Changes that a `ChangeLog` remembers, before it forgets the older half."""


class ChangeLog:
    """What has changed, in order, so that who keeps a view looks again at little; who reads too late, at all."""

    __slots__ = ("_entries", "_forgotten", "end")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._forgotten = self.end = 0

    def note(self, changed: Sequence[int]) -> None:
        """Note changes."""
        self._entries += changed
        self.end += len(changed)
        if len(self._entries) > LOG:
            del self._entries[: len(self._entries) - LOG // 2]
            self._forgotten = self.end - LOG // 2

    def since(self, read: int) -> Long | None:
        """Return what changed after `read` changes, each once, ascending, int64; `None` if that is forgotten."""
        if read < self._forgotten:
            return None
        return np.unique(np.array(self._entries[read - self._forgotten :], dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Need:
    """What a task needs, in whole numbers.

    Attributes:
        grants: how many GPUs it holds, or has a share of.
        share: of each of them, in units of 1/`GPU`.
        cpu: cores, in units of 1/`CPU`.
        gpu_types: the types of GPU it accepts; none named means any.
    """

    grants: int
    share: int
    cpu: int
    memory: int
    gpu_types: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it takes whole GPUs."""
        return self.share == GPU

    @property
    def gpu(self) -> int:
        """All its GPUs, in units of 1/`GPU`."""
        return self.grants * self.share


@lru_cache(maxsize=65_536)
def need(task: Task) -> Need:
    """Return what `task` needs, remembered: traces repeat few kinds. Who sets aside a part of a NIC is refused."""
    demand: Demand = task.demand
    if demand.nic:
        raise InstanceError("demand.nic", f"{demand.nic!r} is not 0: single tasks set no NIC aside")
    share = 0 if not demand.grants else GPU if demand.gpu >= 1 else max(1, floor(demand.gpu * GPU + 1e-3))
    cpu, memory = (ceil(min(x, MOST)) for x in (demand.cpu * CPU - 1e-3, demand.memory))
    return Need(demand.grants, share, cpu, memory, task.gpu_types if demand.grants else ())


class Slots:
    """Nodes of a fleet by slots; all nodes of a slot are alike. At most g GPUs a node.

    Attributes:
        specs: int64 (h, 4), the kinds of hardware: GPU type or -1, GPUs, cores, bytes.
        count: int64 (h,), usable nodes of each.
        node_hardware: int64 (m,), that of each node.
        hardware: int64 (k,), the row in `specs` of each slot.
        free: int64 (k, g), the free shares of each slot, descending; -1 where there is no GPU.
        cpu, memory: int64 (k,), what else is free in each slot.
        marks: int64 (k,), a bit for each kind of GPU request in the slot.
    """

    hardware: Long
    free: Long
    cpu: Long
    memory: Long
    marks: Long

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        cpu, memory = cores(fleet.cpu), np.minimum(fleet.memory, MOST).astype(np.int64)
        spec = np.stack([np.where(fleet.gpus > 0, fleet.gpu_type, -1), fleet.gpus, cpu, memory], axis=1)
        self.specs, kind = np.unique(spec.astype(np.int64), axis=0, return_inverse=True)
        self.node_hardware = np.asarray(kind.ravel(), dtype=np.int64)
        usable = self.node_hardware[np.asarray(fleet.usable)]
        self.count = np.bincount(usable, minlength=len(self.specs)).astype(np.int64)

    def accepts(self, wanted: Need) -> BoolArray:
        """Return which hardware has a GPU type that the task accepts, bool (len(specs),)."""
        known = {i for i, name in enumerate(self.fleet.gpu_types) if name in wanted.gpu_types}
        return np.array([not wanted.gpu_types or int(kind) in known for kind in self.specs[:, 0]])


def cores(amount: np.typing.NDArray[np.float64]) -> Long:
    """Return cores in whole units."""
    return np.asarray(np.floor(np.minimum(amount * CPU + 1e-3, MOST)), dtype=np.int64)


def fitting(slots: Slots, wanted: Need, which: Long) -> BoolArray:
    """Return in which of these slots there is enough for the task, whatever their GPU types, bool (len(which),)."""
    enough = (slots.cpu[which] >= wanted.cpu) & (slots.memory[which] >= wanted.memory)
    if wanted.grants > slots.free.shape[1]:
        return np.zeros(len(which), dtype=bool)
    return np.asarray(enough & (slots.free[which, wanted.grants - 1] >= wanted.share) if wanted.grants else enough)


def kind_of(wanted: Need) -> int:
    """Return which kind of GPU request this is: 0 a share, n for n whole GPUs."""
    return wanted.grants if wanted.whole else 0


class FreeState(Slots):
    """Free GPUs, cores and memory of m nodes with at most g GPUs each.

    Nodes of the same hardware with the same amounts free are one *slot*, and a policy scores slots, not nodes: an idle
    cluster of 10,000 equal nodes has one. There are never more slots than nodes. Adding or removing a task moves a node
    from one slot to another and notes both in `log`, from which indices learn what to score anew. What is said of slots
    is as in `Slots`, with m rows.

    Attributes:
        share: int64 (m, g), free share of each GPU in units of 1/`units.GPU`; -1 where there is no GPU.
        slot_of: int64 (m,), the slot of each node; -1 for nodes that are not usable.
        members: the nodes of each slot, ascending; none if the slot is not in use.
        first: int64 (m,), the first node of each slot; m if the slot is not in use.
        log: slots in the order in which they began or ceased to be in use.
    """

    def __init__(self, fleet: Fleet, *, kinds: bool = False) -> None:
        """Begin with an empty cluster; `kinds` tells nodes apart by the GPU requests on them, for `gpu_clustering`."""
        super().__init__(fleet)
        self.kinds = kinds
        m, width = fleet.n_nodes, max(1, int(fleet.gpus.max()))
        self.share = np.where(np.arange(width) < fleet.gpus[:, None], GPU, -1).astype(np.int64)
        self._node_cpu, self._node_memory = self.specs[self.node_hardware, 2:].T.tolist()
        self._count = np.zeros((m, width + 1), dtype=np.int64)
        self.slot_of = np.full(m, -1, dtype=np.int64)
        self.hardware, self.cpu, self.memory = (np.zeros(m, dtype=np.int64) for _ in range(3))
        self.marks, self.free = np.zeros(m, dtype=np.int64), np.full((m, width), -1, dtype=np.int64)
        self.members: list[list[int]] = [[] for _ in range(m)]
        self.first = np.full(m, m, dtype=np.int64)
        self.log = ChangeLog()
        self._slots: dict[tuple[int, ...], int] = {}
        self._key: list[tuple[int, ...]] = [()] * m
        self._idle = list(range(m - 1, -1, -1))
        usable = np.asarray(fleet.usable)
        for node in np.flatnonzero(usable).tolist():
            self._enter(node, self._node_cpu[node], self._node_memory[node])
        self.capacity = int(np.maximum(self.share, 0)[usable].sum())
        self.allocated = 0

    def fits(self, wanted: Need, slots: Long) -> BoolArray:
        """Return in which of these slots the task fits, bool (len(slots),). The log says which slots are in use."""
        return np.asarray(fitting(self, wanted, slots) & self.accepts(wanted)[self.hardware[slots]])

    def gpus(self, node: int, wanted: Need, share: int = -1) -> tuple[int, ...]:
        """Return the GPUs of `node` for a task that fits: the first with `share` free, or the first whole ones."""
        level = GPU if wanted.whole else share
        found = np.flatnonzero(self.share[node] == level)[: wanted.grants]
        return tuple(found.tolist())

    def add(self, node: int, task: Task, gpus: Sequence[int]) -> None:
        """Put a task on a node."""
        wanted = need(task)
        slot = int(self.slot_of[node])
        if slot < 0:
            raise InstanceError("node", f"{self.fleet.names[node]!r} is not usable")
        if len(set(gpus)) != wanted.grants or len(gpus) != wanted.grants:
            raise InstanceError("gpus", f"{list(gpus)!r} are not {wanted.grants} different GPUs")
        if not self.accepts(wanted)[self.hardware[slot]]:
            raise InstanceError("gpu_types", f"node {self.fleet.names[node]!r} has none of {wanted.gpu_types!r}")
        for j in gpus:
            if not 0 <= j < self.fleet.gpus[node] or self.share[node, j] < wanted.share:
                raise InstanceError("gpus", f"{j!r} of node {self.fleet.names[node]!r} is not free enough")
        if self.cpu[slot] < wanted.cpu or self.memory[slot] < wanted.memory:
            what = "cpu" if self.cpu[slot] < wanted.cpu else "memory"
            raise InstanceError(what, f"node {self.fleet.names[node]!r} has too little of it left")
        self._change(node, wanted, gpus, -1)

    def remove(self, node: int, task: Task, gpus: Sequence[int]) -> None:
        """Take a task off the node where `add` put it."""
        wanted = need(task)
        slot = int(self.slot_of[node])
        over = slot < 0 or self.cpu[slot] + wanted.cpu > self._node_cpu[node]
        over = over or self.memory[slot] + wanted.memory > self._node_memory[node] or len(gpus) != wanted.grants
        if over or any(not 0 <= self.share[node, j] <= GPU - wanted.share for j in gpus):
            raise InstanceError("node", f"{self.fleet.names[node]!r} holds no such task")
        self._change(node, wanted, gpus, 1)

    def copy(self) -> FreeState:
        """Return a state of its own with the same nodes in the same slots."""
        other = object.__new__(FreeState)
        for name, value in vars(self).items():
            own = value.copy() if isinstance(value, np.ndarray | list | dict) else value
            setattr(other, name, own)
        other.members = [list(nodes) for nodes in self.members]
        other.log = ChangeLog()  # who reads it knows states by identity
        return other

    def key(self) -> bytes:
        """Return what tells states of one fleet apart: free shares, cores and memory of every node."""
        used = self.slot_of >= 0
        cpu, memory = np.where(used, self.cpu[self.slot_of], -1), np.where(used, self.memory[self.slot_of], -1)
        return self.share.tobytes() + cpu.tobytes() + memory.tobytes() + self._count.tobytes()

    def _change(self, node: int, wanted: Need, gpus: Sequence[int], sign: int) -> None:
        slot = int(self.slot_of[node])
        cpu, memory = int(self.cpu[slot]) + sign * wanted.cpu, int(self.memory[slot]) + sign * wanted.memory
        self._leave(node, slot)
        for j in gpus:
            self.share[node, j] += sign * wanted.share
        if self.kinds and wanted.grants:
            self._count[node, kind_of(wanted)] -= sign
        self.allocated -= sign * wanted.gpu
        self._enter(node, cpu, memory)

    def _leave(self, node: int, slot: int) -> None:
        nodes = self.members[slot]
        nodes.remove(node)
        self.first[slot] = nodes[0] if nodes else len(self.members)
        if not nodes:
            del self._slots[self._key[slot]]
            self._idle.append(slot)
            self.log.note([slot])

    def _enter(self, node: int, cpu: int, memory: int) -> None:
        free = sorted(self.share[node].tolist(), reverse=True)
        marks = sum(1 << k for k in np.flatnonzero(self._count[node]).tolist()) if self.kinds else 0
        key = (int(self.node_hardware[node]), cpu, memory, marks, *free)
        slot = self._slots.get(key, -1)
        if slot < 0:
            slot = self._slots[key] = self._idle.pop()
            self._key[slot] = key
            self.hardware[slot], self.cpu[slot], self.memory[slot], self.marks[slot] = key[:4]
            self.free[slot] = free
            self.log.note([slot])
        insort(self.members[slot], node)
        self.first[slot] = self.members[slot][0]
        self.slot_of[node] = slot
