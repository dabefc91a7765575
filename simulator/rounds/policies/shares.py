r"""Policies whose shares solve an LP (Narayanan et al., OSDI 2020, section 4; Themis, NSDI 2020)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..jobs import Cluster, RoundJobs
from .base import Index
from .lp import AllocationLP

_KEPT = 4096  # allocations: a cluster in a steady state sees the same mix again
_PASSES = 20
_CLOSE = 1e-3


class ByLP:
    """A policy that solves an LP for the jobs that are there."""

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        self.jobs, self.gpus = jobs, jobs.gpus.astype(np.float64)
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        return self._solved(active, left, age) if len(active) else np.zeros((0, len(self.room)))

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of some jobs."""
        raise NotImplementedError


class Groups:
    """Jobs that an allocation treats alike, so that its LP has a row a group and not a row a job.

    Args:
        key: what tells jobs apart, float64 (n, c).
    """

    def __init__(self, key: FloatArray) -> None:
        rows, first, of = np.unique(key, axis=0, return_index=True, return_inverse=True)
        self.rows: FloatArray = rows
        self.first: Index = first
        self.of: Index = of.reshape(-1)

    def count(self, active: Index) -> tuple[Index, Index, Index]:
        """Return (groups that are there, int64 (m,), jobs of each, and the row of each active job among them)."""
        many = np.bincount(self.of[active], minlength=len(self.rows))
        there = np.flatnonzero(many)
        place = np.zeros(len(self.rows), dtype=np.int64)
        place[there] = np.arange(len(there))
        return there, many[there], place[self.of[active]]


class MaxMinFairnessPerf(ByLP):
    r"""Heterogeneity-aware max-min fairness (section 4.1).

    .. math:: \max_x \min_i \frac{g_i}{w_i} \frac{\sum_j T_{ij} x_{ij}}{\sum_j T_{ij} x^{eq}_j}

    with :math:`T` steps a second, :math:`g` GPUs, :math:`w` weights and :math:`x^{eq}` equal time on all GPUs. Jobs of
    one speed, size and weight are one row; the shares of a mix of jobs are found once.
    """

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        super().__init__(jobs, cluster, seed)
        equal = jobs.speed @ (self.room / self.room.sum())
        gain = jobs.speed / equal[:, None] * (jobs.gpus / jobs.weight)[:, None]
        self.groups = Groups(np.column_stack([gain, jobs.gpus]))
        self.known: dict[bytes, FloatArray] = {}

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        there, many, row = self.groups.count(active)
        mix = there.tobytes() + many.tobytes()
        if mix not in self.known:
            if len(self.known) >= _KEPT:
                self.known.clear()
            kinds = self.groups.rows[there]
            use = kinds[:, -1] * many
            self.known[mix], _ = self.lp.max_min(kinds[:, :-1], np.ones(len(there)), use, self.room)
        return self.known[mix][row]


class MaxMinFairness(MaxMinFairnessPerf):
    """Least attained service: the same with every speed 1 where the job runs at all."""

    in_order = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        super().__init__(replace(jobs, speed=(jobs.speed > 0).astype(np.float64)), cluster, seed)


class MaxSumThroughput(ByLP):
    r"""Most steps a second in all, whoever makes them (section 4.2, all GPUs of one price).

    .. math:: \max_x \sum_{ij} T_{ij} x_{ij}

    Models of short steps win, as in the published code: the sum is of plain steps. Who has no share runs on GPUs that
    would idle.
    """

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        super().__init__(jobs, cluster, seed)
        self.groups = Groups(np.column_stack([jobs.speed, jobs.gpus]))

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        there, many, row = self.groups.count(active)
        kinds = self.groups.rows[there]
        gain = kinds[:, :-1] * many[:, None]
        return self.lp.max_sum(gain / gain.max(), kinds[:, -1] * many, self.room)[row]


class MinTotalDuration(ByLP):
    r"""Least makespan (section 4.2): every job ends within the same least time, as far as rounds allow.

    .. math:: \min T \quad \text{with} \quad T \sum_j T_{ij} x_{ij} \ge n_i

    for the steps left :math:`n_i`. The unknown 1/T makes it one LP, where the published code searches T by bisection.
    """

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        speed = self.jobs.speed[active]
        fastest = speed.max(axis=1)
        least = left / fastest
        return self.lp.max_min(speed / fastest[:, None], least / least.max(), self.gpus[active], self.room)[0]


class FinishTimeFairness(ByLP):
    r"""Finish-time fairness (Themis, Mahajan et al., NSDI 2020, as in section 4.2).

    .. math:: \min_x \max_i \rho_i, \qquad
        \rho_i = \frac{t_i + n_i / \sum_j T_{ij} x_{ij}}{s_i + n_i / \sum_j T_{ij} x^{iso}_{ij}}

    with the time :math:`t_i` since submission, the steps left :math:`n_i` and the time :math:`s_i` that the steps done
    so far would have taken alone; :math:`x^{iso}` is an equal share of every type's GPUs, at most the whole time. The
    paper has :math:`t_i` for :math:`s_i`, the published code has this: a job that was kept waiting has a claim to more.

    For one bound on rho the speeds needed are a max-min LP; the bound it just meets is found by secants. The part t of
    the needed speeds that can be had grows with the bound, in proportion while jobs are new.
    """

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        super().__init__(jobs, cluster, seed)
        self.rho = 1.0  # where to begin: an arrival or an end moves it little
        self.done = np.zeros(jobs.n_jobs)  # seconds alone for the steps so far
        self.before = np.array(jobs.steps, dtype=np.float64)
        self.rate = np.full(jobs.n_jobs, np.inf)  # who is new has done nothing

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        speed, gpus = self.jobs.speed[active], self.gpus[active]
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
