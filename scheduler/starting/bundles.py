"""Say how many workers of a gang stick together, and which nodes may have them."""

from __future__ import annotations

from dataclasses import dataclass

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
        self._placer = placer
        self._sizes: dict[tuple[Kind, int, int, bool], int] = {}
        self._grounds: dict[Kind, EmptyNodes] = {}
        self._numbers: dict[bytes, int] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._sizes.clear()
        self._grounds.clear()
        self._numbers.clear()

    def ground(self, job: GangJob) -> EmptyNodes:
        """Return the nodes that are up and may have a worker of a gang."""
        kind = Kind.workers(job)
        if kind not in self._grounds:
            if len(self._grounds) >= _KINDS:
                self._grounds.clear()
            most = self._placer.most_on(job)
            number = self._numbers.setdefault((most > 0).tobytes(), len(self._numbers))
            part = self._placer.part(job)
            total = int(most.sum() if part is None else np.bincount(part, most).max(initial=0))
            self._grounds[kind] = EmptyNodes(most > 0, most, total, number)
        return self._grounds[kind]

    def size(self, job: GangJob, degree: int, step: int = 1, *, up: bool = True) -> int:
        """Return the most workers a bundle with which so many fit the cluster if nobody is there, 0 if they never do.

        Bundles are all on one node where that takes the gang, else a node's fill; where nodes are unlike or too few,
        less. If the nodes that are up are too few for the gang, or unless it is about them (`up`), those that are down
        count too. Each `step` workers are on one node, whatever else.
        """
        key = Kind.workers(job), degree, step, up
        if key not in self._sizes:
            if len(self._sizes) >= _KINDS:
                self._sizes.clear()
            self._sizes[key] = (up and self._size(job, degree, step, True)) or self._size(job, degree, step, False)
        return self._sizes[key]

    def _size(self, job: GangJob, degree: int, step: int, up: bool) -> int:
        part = self._placer.part(job)
        if step > 1 or part is not None:
            room = self._placer.most_on(job, up=up)
            part = np.zeros(len(room), dtype=np.int64) if part is None else part
            larger = range(min(degree, int(room.max(initial=0))) // step * step, 0, -step)
            return next((b for b in larger if (np.bincount(part, room // b) * b).max() >= degree), 0)
        most, nodes = np.unique(self._placer.most_on(job, up=up), return_counts=True)
        if int((most * nodes).sum()) < degree:
            return 0
        sizes = range(min(degree, int(most.max(initial=0))), 0, -1)
        return next(size for size in sizes if int((most // size * nodes).sum()) * size >= degree)
