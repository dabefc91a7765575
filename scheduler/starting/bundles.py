"""Say how many workers of a gang stick together, and which nodes may have them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.placer import Placer
from gangplan.solvers.placement.online.state import Long

_KINDS = 512
"""Kinds of worker that are remembered until a node fails or comes back."""


@dataclass(frozen=True, slots=True, eq=False)
class EmptyNodes:
    """The nodes that are up and take a worker if nobody is there.

    Attributes:
        nodes: which they are, bool (m,).
        most: workers that each takes, int64 (m,).
        total: workers of one gang that they take together.
        number: of this set of nodes.
    """

    nodes: BoolArray
    most: Long
    total: int
    number: int


class Bundles:
    """Keep what is known of kinds of worker, forgotten when a node fails or comes back.

    Args:
        placer: knows the nodes.
    """

    def __init__(self, placer: Placer) -> None:
        self._placer, self._numbers = placer, dict[bytes, int]()
        self._ground, self._size = lru_cache(_KINDS)(self._empty_nodes), lru_cache(_KINDS)(self._largest)

    def clear(self) -> None:
        """Forget everything."""
        self._ground.cache_clear()
        self._size.cache_clear()
        self._numbers.clear()

    def ground(self, job: GangJob) -> EmptyNodes:
        """Return the nodes that are up and may have a worker of a gang."""
        return self._ground(Kind.workers(job))

    def _empty_nodes(self, kind: Kind) -> EmptyNodes:
        most = self._placer.most_on(kind)
        number = self._numbers.setdefault((most > 0).tobytes(), len(self._numbers))
        total = int(np.bincount(self._placer.domain(kind), most).max(initial=0))
        return EmptyNodes(most > 0, most, total, number)

    def size(self, job: GangJob, degree: int, step: int = 1, *, up: bool = True) -> int:
        """Return the most workers a bundle with which so many fit the cluster if nobody is there, 0 if they never do.

        Bundles are all on one node where that takes the gang, else a node's fill; where nodes are unlike or too few,
        less. If the nodes that are up are too few for the gang, or unless it is about them (`up`), those that are down
        count too. Each `step` workers are on one node, whatever else.
        """
        kind = Kind.workers(job)
        return (up and self._size(kind, degree, step, True)) or self._size(kind, degree, step, False)

    def _largest(self, kind: Kind, degree: int, step: int, up: bool) -> int:
        room, part = self._placer.most_on(kind, up=up), self._placer.part(kind)
        nodes: Long | int = 1
        if part is None:
            room, nodes = np.unique(room, return_counts=True)
            part = 0 * room
        sizes = range(min(degree, int(room.max(initial=0))) // step * step, 0, -step)
        return next((b for b in sizes if np.bincount(part, room // b * b * nodes).max() >= degree), 0)
