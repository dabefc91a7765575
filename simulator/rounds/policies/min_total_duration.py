r"""Least makespan (Narayanan et al., OSDI 2020, section 4.2).

.. math:: \min T \quad \text{with} \quad T \sum_j T_{ij} x_{ij} \ge n_i

for the steps left :math:`n_i`. The unknown 1/T makes it one LP, where the published code searches T by bisection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Index
from .lp import AllocationLP


class MinTotalDuration:
    """Every job ends within the same least time, as far as rounds allow."""

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.fastest = jobs.speed.max(axis=1)
        self.gain = jobs.speed / self.fastest[:, None]
        self.gpus = jobs.gpus.astype(np.float64)
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        if not len(active):
            return np.zeros((0, len(self.room)))
        least = left / self.fastest[active]
        return self.lp.max_min(self.gain[active], least / least.max(), self.gpus[active], self.room)[0]
