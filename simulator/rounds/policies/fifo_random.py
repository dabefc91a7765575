"""First come, first served on a random type: the heterogeneity-agnostic FIFO of Narayanan et al., OSDI 2020."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Index


class FifoRandom:
    """In order of arrival, a job gets a random type with room and keeps it; the first without room blocks others."""

    in_order = False
    strict = True

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.jobs, self.cluster = jobs, cluster
        self.random = random.Random(seed)
        self.kind: dict[int, int] = {}

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        free = np.array(self.cluster.count)
        self.kind = {job: self.kind[job] for job in active.tolist() if job in self.kind}
        for job, kind in self.kind.items():
            free[kind] -= self.jobs.gpus[job]
        found = np.zeros((len(active), len(free)))
        for row, job in enumerate(active.tolist()):
            if job not in self.kind:
                runs = (free >= self.jobs.gpus[job]) & (self.jobs.speed[job] > 0)
                if not runs.any():
                    break
                self.kind[job] = self.random.choice(np.flatnonzero(runs).tolist())
                free[self.kind[job]] -= self.jobs.gpus[job]
            found[row, self.kind[job]] = 1.0
        return found
