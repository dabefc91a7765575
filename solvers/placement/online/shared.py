"""What all workers of a gang share: a group of a level of the network, a type of GPU; and the parts that this makes."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, GangJob

from .state import Long

NODE = "node"
"""The level of the nodes themselves, below those of the topology."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all workers of a gang share.

    Attributes:
        level: of the network, in one group of which they are; "" if they may be anywhere.
        required: whether they are nowhere else; if not, one group has them where one has the room.
        types: GPU types, and how many times as long the gang takes there as on the best.
        mixed: whether their GPUs may be of several types; they are of one where one has the room.
    """

    level: str = ""
    required: bool = True
    types: tuple[tuple[str, float], ...] = ()
    mixed: bool = False

    def possible(self, fleet: Fleet) -> bool:
        """Return whether the fleet has the level, if that is required."""
        return not (self.level and self.required) or self.level in levels_of(fleet)


@dataclass(frozen=True, slots=True)
class SharedGang(GangJob):
    """A gang as the placer sees it, whose workers share something."""

    shared: Shared = Shared()

    @classmethod
    def of(cls, job: GangJob, shared: Shared) -> SharedGang:
        """Return a gang with what its workers share."""
        return cls(**{f.name: getattr(job, f.name) for f in fields(GangJob)}, shared=shared)


def levels_of(fleet: Fleet) -> tuple[str, ...]:
    """Return the levels of a fleet, the nodes first."""
    return NODE, *(each.name for each in fleet.topology.levels)


def level_groups(fleet: Fleet, level: str) -> Long:
    """Return the group of each node at a level, int64 (m,): one group if the fleet has no such level."""
    if level == NODE:
        return np.arange(fleet.n_nodes)
    names = levels_of(fleet)[1:]
    at = fleet.topology.group[names.index(level)] if level in names else np.zeros(fleet.n_nodes)
    return np.asarray(at, dtype=np.int64)


class FleetParts:
    """The parts of a fleet, one of which has a gang whole, and finer ones in which it goes if one has the room.

    Attributes:
        part, near: the part of each node, int64 (m,).
        slow, near_slow: how many times as long the gang takes there, float64, of each part.
    """

    def __init__(self, fleet: Fleet, shared: Shared) -> None:
        group = level_groups(fleet, shared.level)
        times = dict(shared.types)
        of = np.where(fleet.gpus > 0, fleet.gpu_type, 0).astype(np.int64)
        slow = np.array([times.get(kind, 1.0) for kind in fleet.gpu_types] or [1.0])[of]
        kind = of if times else 0 * group
        self.part, self.slow = _numbered(group * shared.required, kind * (not shared.mixed), slow)
        self.near, self.near_slow = _numbered(group, kind, slow)

    def choose(self, room: Long, workers: int) -> Long:
        """Return the nodes of a part that has so many workers, as one does: the fastest, of these the fullest."""
        best, where = np.inf, np.zeros(0, dtype=np.int64)
        for part, slow in ((self.near, self.near_slow), (self.part, self.slow)):
            held = np.bincount(part, room, len(slow))
            able = np.flatnonzero(held >= workers)
            if len(able):
                first = int(able[np.lexsort((able, held[able], slow[able]))[0]])
                if slow[first] < best:
                    best, where = float(slow[first]), np.flatnonzero(part == first)
        return where


def _numbered(group: Long, kind: Long, slow: FloatArray) -> tuple[Long, FloatArray]:
    """Return the part of each node, numbered from 0, and the slowest of each part."""
    names, part = np.unique(group * (int(kind.max(initial=0)) + 1) + kind, return_inverse=True)
    slowest = np.zeros(len(names))
    np.maximum.at(slowest, part, slow)
    return np.asarray(part.ravel(), dtype=np.int64), slowest
