r"""Most steps a second in all, whoever makes them (Narayanan et al., OSDI 2020, section 4.2, all GPUs of one price).

.. math:: \max_x \sum_{ij} T_{ij} x_{ij}

Models of short steps win, as in the published code: the sum is of plain steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Groups, Index
from .lp import AllocationLP


class MaxSumThroughput:
    """Who has no share runs on GPUs that would idle."""

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.groups = Groups(np.column_stack([jobs.speed, jobs.gpus]))
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        if not len(active):
            return np.zeros((0, len(self.room)))
        there, many, row = self.groups.count(active)
        kinds = self.groups.rows[there]
        gain = kinds[:, :-1] * many[:, None]
        return self.lp.max_sum(gain / gain.max(), kinds[:, -1] * many, self.room)[row]
