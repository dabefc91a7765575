"""Whole numbers for what nodes have and tasks need, so that removing a task restores a node exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.placement.job import Demand
from gangplan.instances.placement.task import Task

Long = NDArray[np.int64]
GPU = 1_000_000
"""Millionths of a GPU; a share is rounded down, so that n shares of 1/n fit one GPU."""

CPU = 1_000_000
"""Millionths of a core; what a task needs is rounded up."""

MOST = 2.0**62
"""No amount is larger: what sums and 64 bits can hold."""


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
