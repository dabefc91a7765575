r"""Finish-time fairness (Themis, Mahajan et al., NSDI 2020, as in Narayanan et al., OSDI 2020, section 4.2).

.. math:: \min_x \max_i \rho_i, \qquad
    \rho_i = \frac{t_i + n_i / \sum_j T_{ij} x_{ij}}{s_i + n_i / \sum_j T_{ij} x^{iso}_{ij}}

with the time :math:`t_i` since submission, the steps left :math:`n_i` and the time :math:`s_i` that the steps done so
far would have taken alone; :math:`x^{iso}` is an equal share of every type's GPUs, at most the whole time. The paper
has :math:`t_i` for :math:`s_i`, the published code has this: a job that was kept waiting has a claim to more.
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
_CLOSE = 1e-3


class FinishTimeFairness:
    """For one bound on rho the speeds needed are a max-min LP; the bound it just meets is found by secants.

    The part t of the needed speeds that can be had grows with the bound, in proportion while jobs are new.
    """

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.speed = jobs.speed
        self.gpus = jobs.gpus.astype(np.float64)
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()
        self.rho = 1.0  # where to begin: an arrival or an end moves it little
        self.done = np.zeros(jobs.n_jobs)  # seconds alone for the steps so far
        self.before = np.array(jobs.steps, dtype=np.float64)
        self.rate = np.full(jobs.n_jobs, np.inf)  # who is new has done nothing

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        if not len(active):
            return np.zeros((0, len(self.room)))
        speed, gpus = self.speed[active], self.gpus[active]
        self.done[active] += (self.before[active] - left) / self.rate[active]
        rate = (speed * isolated(gpus, self.room)).sum(axis=1)
        self.before[active], self.rate[active] = left, rate
        alone = self.done[active] + left / rate
        fastest = speed.max(axis=1)
        low = float((age / alone).max())
        high = float(((age + left / rate) / alone).max())  # that of the isolated shares
        rho = self.rho if low < self.rho < high else high
        before = low, 0.0
        for _ in range(_PASSES):
            needed = left / (rho * alone - age) / fastest
            found, t = self.lp.max_min(speed / fastest[:, None], needed / needed.max(), gpus, self.room)
            t /= float(needed.max())
            if abs(t - 1) <= _CLOSE:
                break
            low, high = (low, rho) if t > 1 else (rho, high)
            now = rho, t
            rho += (1 - t) * (rho - before[0]) / (t - before[1])
            before = now
            if not low < rho < high:
                rho = (low + high) / 2
        self.rho = rho
        return found


def isolated(gpus: FloatArray, room: FloatArray) -> FloatArray:
    """Return the shares of time with an equal part of each type's GPUs, float64 (a, k): at most 1 in all."""
    part = room / len(gpus) / gpus[:, None]
    found: FloatArray = part / np.maximum(1.0, part.sum(axis=1))[:, None]
    return found
