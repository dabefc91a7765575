r"""Policies whose shares solve an LP (Narayanan et al., OSDI 2020, section 4; Themis, NSDI 2020), by HiGHS.

Shares :math:`x_{ij}` are of the time that group i gets on type j. All LPs keep (a) each job's time,
:math:`\sum_j x_{ij} \le 1`, and (b) each type's GPUs, :math:`\sum_i u_i x_{ij} \le r_j`, where :math:`u_i` are the GPUs
of all jobs of group i (section 3.1).

Optima are many, and which is taken moves the mean JCT by up to a fifth (`docs/tried/measured.md`). An interior-point
solution without crossover lies inside the face of optima and spreads shares over types; a vertex gives each job as few
types as can be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.highs import new_highs

from ..jobs import Index, RoundJobs, RoundsCluster

_KEPT = 4096  # allocations: a cluster in a steady state sees the same mix again
_PASSES = 20
_CLOSE = 1e-3
_TOLERANCE = 1e-7  # of HiGHS on feasibility; its interior point's own default is finer than shares are of use
_NONE = 1e-6  # shares below it are what an interior point leaves of 0


class ByLP:
    """A policy that solves an LP for the jobs that are there."""

    in_order = True
    strict = False

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
        self.jobs, self.gpus = jobs, jobs.gpus.astype(np.float64)
        self.room = np.array(cluster.count, dtype=np.float64)
        self.lp = AllocationLP()

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `Policy`."""
        return self._solved(active, left, age) if len(active) else np.zeros((0, len(self.room)))

    def _solved(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        raise NotImplementedError


class Groups:
    """Jobs that an allocation treats alike, by `key`, (n, c), so that its LP has a row a group and not a row a job."""

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

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
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

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
        super().__init__(replace(jobs, speed=(jobs.speed > 0).astype(np.float64)), cluster, seed)


class MaxSumThroughput(ByLP):
    r"""Most steps a second in all, whoever makes them (section 4.2, all GPUs of one price).

    .. math:: \max_x \sum_{ij} T_{ij} x_{ij}

    Models of short steps win, as in the published code: the sum is of plain steps. Who has no share runs on GPUs that
    would idle.
    """

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
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

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
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


class AllocationLP:
    """One solver, for one LP after another."""

    def __init__(self) -> None:
        quick = {"presolve": "off", "run_crossover": "off", "ipm_optimality_tolerance": _TOLERANCE}
        self._highs = new_highs(output_flag=False, threads=1, **quick)

    def max_min(
        self, gain: FloatArray, demand: FloatArray, use: FloatArray, room: FloatArray
    ) -> tuple[FloatArray, float]:
        r"""Return shares (m, k) that maximise t, and t, :math:`\sum_j g_{ij} x_{ij} \ge d_i t` for every i.

        Args:
            gain: of a full share, float64 (m, k).
            use: GPUs of all jobs of a group, float64 (m,).
            room: GPUs of each type, float64 (k,).
        """
        m, k = gain.shape
        columns = _columns(gain, use)
        start = np.append(np.arange(m * k + 1) * 3, 3 * m * k + m)
        index = np.append(columns[0], np.arange(m))
        value = np.append(columns[1], -demand)
        lower = np.append(np.zeros(m), np.full(m + k, -highspy.kHighsInf))
        upper = np.concatenate([np.full(m, highspy.kHighsInf), np.ones(m), room])
        found = self._solve(np.append(np.zeros(m * k), -1.0), start, index, value, lower, upper)
        return found[:-1].reshape(m, k), float(found[-1])

    def max_sum(self, gain: FloatArray, use: FloatArray, room: FloatArray) -> FloatArray:
        r"""Return shares (m, k) that maximise :math:`\sum_{ij} g_{ij} x_{ij}`; arguments as of `max_min`."""
        m, k = gain.shape
        index, value = _columns(gain, use)
        lower = np.full(2 * m + k, -highspy.kHighsInf)
        upper = np.concatenate([np.full(m, highspy.kHighsInf), np.ones(m), room])
        return self._solve(-gain.ravel(), np.arange(m * k + 1) * 3, index, value, lower, upper).reshape(m, k)

    def _solve(self, cost: Any, start: Any, index: Any, value: Any, lower: Any, upper: Any) -> FloatArray:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(cost), len(lower)
        lp.col_cost_, lp.col_lower_ = cost, np.zeros(len(cost))
        lp.col_upper_ = np.full(len(cost), highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = lower, upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
        self._highs.passModel(lp)
        for solver in ("ipm", "simplex"):  # an interior point may end a digit short of its tolerance
            self._highs.setOptionValue("solver", solver)
            self._highs.run()
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                found = np.array(self._highs.getSolution().col_value)
                return np.where(found < _NONE, 0.0, found)
        raise RuntimeError(f"HiGHS ends an allocation as {self._highs.getModelStatus()}")


def _columns(gain: FloatArray, use: FloatArray) -> tuple[Any, Any]:
    """Return rows and values of three entries a share: what it gives, (a) and (b)."""
    m, k = gain.shape
    i, j = np.divmod(np.arange(m * k), k)
    index = np.stack([i, m + i, 2 * m + j], axis=1).ravel()
    value = np.stack([gain.ravel(), np.ones(m * k), use[i]], axis=1).ravel()
    return index, value
