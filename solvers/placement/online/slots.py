"""What policies for single tasks see: needs in whole numbers, nodes in slots, and what is free in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor
from typing import Protocol

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
    """What has changed, in this order, so that who keeps a view looks again at little; who reads too late, at all.

    Attributes:
        end: how many changes there were.
    """

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
        memory: bytes.
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
    """Return what `task` needs; remembered, for a trace repeats few kinds of task.

    Raises:
        InstanceError: if it sets aside a part of a NIC, which clusters of single tasks do not account for.
    """
    demand: Demand = task.demand
    if demand.nic:
        raise InstanceError("demand.nic", f"{demand.nic!r} is not 0: single tasks set no NIC aside")
    share = 0 if not demand.grants else GPU if demand.gpu >= 1 else max(1, floor(demand.gpu * GPU + 1e-3))
    cpu, memory = (ceil(min(x, MOST)) for x in (demand.cpu * CPU - 1e-3, demand.memory))
    return Need(demand.grants, share, cpu, memory, task.gpu_types if demand.grants else ())


class Slots(Protocol):
    """Nodes by slots; all nodes of a slot are alike. At most g GPUs a node.

    Attributes:
        specs: int64 (h, 4), the kinds of hardware: GPU type or -1, GPUs, cores, bytes.
        count: int64 (h,), usable nodes of each.
        hardware: int64 (k,), the row in `specs` of each slot.
        free: int64 (k, g), the free shares of each slot, descending; -1 where there is no GPU.
        cpu, memory: int64 (k,), what else is free in each slot.
        marks: int64 (k,), a bit for each kind of GPU request in the slot.
    """

    specs: Long
    count: Long
    hardware: Long
    free: Long
    cpu: Long
    memory: Long
    marks: Long

    def accepts(self, wanted: Need) -> BoolArray:
        """Return which hardware has a GPU type that the task accepts, bool (len(specs),)."""
        ...


def hardware_of(fleet: Fleet) -> tuple[Long, Long]:
    """Return the kinds of hardware of a fleet, see `Slots.specs`, and that of each node, int64 (m,)."""
    cpu, memory = cores(fleet.cpu), np.minimum(fleet.memory, MOST).astype(np.int64)
    spec = np.stack([np.where(fleet.gpus > 0, fleet.gpu_type, -1), fleet.gpus, cpu, memory], axis=1)
    specs, hardware = np.unique(spec.astype(np.int64), axis=0, return_inverse=True)
    return specs, np.asarray(hardware.ravel(), dtype=np.int64)


def cores(amount: np.typing.NDArray[np.float64]) -> Long:
    """Return cores in whole units."""
    return np.asarray(np.floor(np.minimum(amount * CPU + 1e-3, MOST)), dtype=np.int64)


def accepting(fleet: Fleet, specs: Long, wanted: Need) -> BoolArray:
    """Return which hardware has a GPU type that the task accepts, bool (len(specs),)."""
    known = {i for i, name in enumerate(fleet.gpu_types) if name in wanted.gpu_types}
    return np.array([not wanted.gpu_types or int(kind) in known for kind in specs[:, 0]])


def fitting(slots: Slots, wanted: Need, which: Long) -> BoolArray:
    """Return in which of these slots there is enough for the task, whatever their GPU types, bool (len(which),)."""
    enough = (slots.cpu[which] >= wanted.cpu) & (slots.memory[which] >= wanted.memory)
    if wanted.grants > slots.free.shape[1]:
        return np.zeros(len(which), dtype=bool)
    return np.asarray(enough & (slots.free[which, wanted.grants - 1] >= wanted.share) if wanted.grants else enough)
