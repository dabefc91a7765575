"""The allocators in the engine: a part of a scheduler that places gangs on close GPUs."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.engine import View
from gangplan.simulator.engine.jobs import Rows

from .allocate import ALLOCATORS, allocate
from .arrays import Cluster, cluster_of


class Close:
    """Place a job on the GPUs that an allocator gives it, of each node the first idle ones, told apart.

    Args:
        allocator: one of `ALLOCATORS`.
    """

    def __init__(self, allocator: str = "closest") -> None:
        if allocator not in ALLOCATORS:
            raise InstanceError("allocator", f"{allocator!r} is not one of {', '.join(ALLOCATORS)}")
        self._rule = ALLOCATORS.index(allocator)
        self._of: Fleet | None = None
        self._cluster: Cluster

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Return where a job starts now, None if it does not fit."""
        if self._of is not view.fleet:
            self._of, self._cluster = view.fleet, cluster_of(view.fleet, Proximity())
        first, take = self._cluster.first, np.zeros(view.fleet.n_nodes, dtype=np.int64)
        if not allocate(self._rule, degree, self._cluster, view.free, take):
            return None
        nodes = np.flatnonzero(take).tolist()
        chosen = [np.flatnonzero(view.idle[first[k] : first[k + 1]])[: take[k]] for k in nodes]
        return Rows(np.repeat(np.arange(len(take)), take), np.ones(degree, dtype=np.int64), np.concatenate(chosen))
