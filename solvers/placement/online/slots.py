"""What policies see of a cluster: its nodes in slots, and what is free in each."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement.fleet import Fleet

from .units import CPU, MOST, Long, Need


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
