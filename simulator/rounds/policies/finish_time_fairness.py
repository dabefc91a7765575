r"""Finish-time fairness (Themis, Mahajan et al., NSDI 2020, as in Narayanan et al., OSDI 2020, section 4.2).

.. math:: \min_x \max_i \rho_i, \qquad
    \rho_i = \frac{t_i + n_i / \sum_j T_{ij} x_{ij}}{t_i + n_i / \sum_j T_{ij} x^{iso}_{ij}}

with the time :math:`t_i` since submission and the steps left :math:`n_i`; :math:`x^{iso}` is an equal share of every
type's GPUs, at most the whole time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs
from .base import Index
from .lp import AllocationLP

_PASSES = 20
_CLOSE = 1e-4


class FinishTimeFairness:
    """For one bound on rho the speeds needed are a max-min LP, and its shares have a rho of their own, the next bound.

    This is Dinkelbach's method for the least greatest ratio (Crouzeix, Ferland and Schaible 1985): a few LPs.
    """

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.speed = jobs.speed
        self.gpus = jobs.gpus.astype(np.float64)
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        speed, gpus = self.speed[active], self.gpus[active]
        alone = age + left / (speed * isolated(gpus, self.room)).sum(axis=1)
        fastest = speed.max(axis=1)
        rho = 1.0  # what the isolated shares have
        for _ in range(_PASSES):
            needed = left / (rho * alone - age) / fastest
            found = self.lp.max_min(speed / fastest[:, None], needed / needed.max(), gpus, self.room)
            bound = float(((age + left / (speed * found).sum(axis=1)) / alone).max())
            if bound > rho * (1 - _CLOSE):
                break
            rho = bound
        return found


def isolated(gpus: FloatArray, room: FloatArray) -> FloatArray:
    """Return the shares of time with an equal part of each type's GPUs, float64 (a, k): at most 1 in all."""
    found: FloatArray = room / len(gpus) / gpus[:, None]
    return found / np.maximum(1.0, found.sum(axis=1))[:, None]
