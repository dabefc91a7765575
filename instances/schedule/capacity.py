"""What the jobs of a schedule run on: GPUs that are only counted, equal nodes, or the blocks of a RAMP cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..arrays import IntArray, require_count, require_number
from ..cluster import RampTopology
from ..ramp import blocks, blocks_by_shape


@dataclass(frozen=True, slots=True)
class Pool:
    """GPUs of which a job holds any that are free.

    Attributes:
        gpus: how many.
    """

    gpus: int

    def __post_init__(self) -> None:
        require_number(self.gpus, "gpus", positive=True, whole=True)
        require_count(self.gpus, "gpus")


@dataclass(frozen=True, slots=True)
class NodePool:
    """Equal nodes on which jobs are consolidated.

    A job of at most `gpus` GPUs is on one node; a larger one fills nodes, and what is left of it is on one more, which
    it may share.

    Attributes:
        nodes: how many.
        gpus: of a node.
    """

    nodes: int
    gpus: int = 8

    def __post_init__(self) -> None:
        require_number(self.nodes, "nodes", positive=True, whole=True)
        require_number(self.gpus, "gpus", positive=True, whole=True)
        require_count(self.nodes * self.gpus, "nodes")


Capacity = Pool | NodePool | RampTopology
"""On a RAMP cluster a job holds one block of servers of a shape that PAC-ML knows, see `gangplan.instances.ramp`."""


def total(capacity: Capacity) -> int:
    """Return how many GPUs there are."""
    if isinstance(capacity, Pool):
        return capacity.gpus
    return capacity.nodes * capacity.gpus if isinstance(capacity, NodePool) else capacity.n_devices


def holds(capacity: Capacity, degree: int) -> bool:
    """Return whether a job of `degree` GPUs fits while nothing else runs."""
    if isinstance(capacity, RampTopology):
        return next(blocks(capacity, degree), None) is not None
    return degree <= total(capacity)


@lru_cache(maxsize=256)
def ramp_blocks(topology: RampTopology, size: int) -> IntArray:
    """Return the blocks of `size` servers, int32 (blocks, size), servers ascending, in the order of first fit."""
    rows = [rows for _, rows in blocks_by_shape(topology, size)]
    found = np.concatenate(rows) if rows else np.zeros((0, size), dtype=np.int32)
    found.setflags(write=False)
    return found
