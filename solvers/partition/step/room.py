"""Which device still has room for a group, and placements that fit when memory is scarce."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import IntArray

from ...run import never
from .model import Prepared

_TRIES = 40


class Room:
    """A placement of groups in the making, and the memory it leaves.

    Attributes:
        where: the device of each group, -1 while it has none.
        left: bytes left on each device.
    """

    def __init__(self, p: Prepared) -> None:
        self.p = p
        self.need: list[float] = p.group_memory.tolist()
        self.allowed: list[list[bool]] = p.allowed.tolist()
        self.left: list[float] = p.room.tolist()
        self.where = [-1] * p.n_groups

    def fits(self, g: int, d: int) -> bool:
        """Return whether group g may go to device d."""
        return self.allowed[g][d] and self.need[g] <= self.left[d]

    def put(self, g: int, d: int) -> None:
        """Put group g, which has no device, on device d."""
        self.where[g] = d
        self.left[d] -= self.need[g]

    def take(self, g: int) -> None:
        """Take group g off its device."""
        self.left[self.where[g]] += self.need[g]
        self.where[g] = -1

    def first_of_twins(self) -> list[int]:
        """Return the devices without those that are no different from an earlier one: empty, and its twin is."""
        used = set(self.where)
        found, seen = [], set()
        for d, twin in enumerate(self.p.twins.tolist()):
            if d in used or twin not in seen:
                found.append(d)
            if d not in used:
                seen.add(twin)
        return found

    def spread(self) -> list[int]:
        """Return the device of each op, -1 where its group has none."""
        return [self.where[g] for g in self.p.group_of.tolist()]


def pack(p: Prepared, seed: int = 0, stopped: Callable[[], bool] = never) -> IntArray | None:
    """Return a device for each group so that all fit, int32 (G,), or `None` if none was found.

    Best fit, the most demanding groups first, and then in orders ever more random.
    """
    rng = np.random.default_rng(seed)
    # those that few devices take come first
    choices = p.allowed.sum(axis=1)
    size = p.group_memory / max(1.0, float(p.group_memory.max()))
    for i in range(_TRIES):
        noise = rng.random(p.n_groups) * i / _TRIES
        order: list[int] = np.lexsort((-size - noise, choices)).tolist()
        room = Room(p)
        for g in order:
            if stopped():
                return None
            fitting = [d for d in range(p.n_devices) if room.fits(g, d)]
            if not fitting:
                break
            room.put(g, min(fitting, key=room.left.__getitem__))
        else:
            return np.array(room.where, dtype=np.int32)
    return None
