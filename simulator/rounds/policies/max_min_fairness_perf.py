r"""Heterogeneity-aware max-min fairness (Narayanan et al., OSDI 2020, section 4.1).

.. math:: \max_x \min_i \frac{g_i}{w_i} \frac{\sum_j T_{ij} x_{ij}}{\sum_j T_{ij} x^{eq}_j}

with :math:`T` steps a second, :math:`g` GPUs, :math:`w` weights and :math:`x^{eq}` equal time on all GPUs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Groups, Index, equal_speed
from .lp import AllocationLP

_KEPT = 4096  # allocations: a cluster in a steady state sees the same mix again


class MaxMinFairnessPerf:
    """Jobs of one speed, size and weight are one row; the shares of a mix of jobs are found once."""

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        gain = jobs.speed / equal_speed(jobs, cluster)[:, None] * (jobs.gpus / jobs.weight)[:, None]
        self.groups = Groups(np.column_stack([gain, jobs.gpus]))
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()
        self.known: dict[bytes, FloatArray] = {}

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        if not len(active):
            return np.zeros((0, len(self.room)))
        there, many, row = self.groups.count(active)
        mix = there.tobytes() + many.tobytes()
        if mix not in self.known:
            if len(self.known) >= _KEPT:
                self.known.clear()
            kinds = self.groups.rows[there]
            use = kinds[:, -1] * many
            self.known[mix], _ = self.lp.max_min(kinds[:, :-1], np.ones(len(there)), use, self.room)
        return self.known[mix][row]
