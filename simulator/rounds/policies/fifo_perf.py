"""First come, first served, each job on the type where it is fastest (Narayanan et al., OSDI 2020, section 4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Index


class FifoPerf:
    """In order of arrival, a job gets the fastest type with room; the first that fits nowhere blocks the others.

    All are assigned anew each time, so a job may move to a faster type that has come free.
    """

    in_order = True
    strict = True

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.jobs, self.cluster = jobs, cluster
        self.by_name = np.argsort(np.array(cluster.types))  # of two equally fast types, the first by name

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        free = np.array(self.cluster.count)
        found = np.zeros((len(active), len(free)))
        for row, job in enumerate(active.tolist()):
            fits = [kind for kind in self.by_name.tolist() if free[kind] >= self.jobs.gpus[job]]
            if not fits:
                break
            kind = max(fits, key=lambda j: self.jobs.speed[job, j])
            if self.jobs.speed[job, kind] > 0:
                found[row, kind] = 1.0
                free[kind] -= self.jobs.gpus[job]
        return found
