r"""Allocation LPs, by HiGHS: shares :math:`x_{ij}` of time that group i gets on type j.

All keep (a) each job's time, :math:`\sum_j x_{ij} \le 1`, and (b) each type's GPUs, :math:`\sum_i u_i x_{ij} \le r_j`,
where :math:`u_i` are the GPUs of all jobs of group i (Narayanan et al., OSDI 2020, section 3.1).

Optima are many, and which is taken moves the mean JCT by up to a fifth (`docs/rounds.md`). An interior-point solution
without crossover lies inside the face of optima and spreads shares over types; a vertex gives each job as few types
as can be.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

_TOLERANCE = 1e-7  # of HiGHS on feasibility; its interior point's own default is finer than shares are of use
_NONE = 1e-6  # shares below it are what an interior point leaves of 0


class AllocationLP:
    """One solver, for one LP after another."""

    def __init__(self) -> None:
        self._highs = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("run_crossover", "off"),
            ("ipm_optimality_tolerance", _TOLERANCE),
        ):
            self._highs.setOptionValue(option, value)

    def max_min(
        self, gain: FloatArray, demand: FloatArray, use: FloatArray, room: FloatArray
    ) -> tuple[FloatArray, float]:
        r"""Return shares (m, k) that maximise t, and t, :math:`\sum_j g_{ij} x_{ij} \ge d_i t` for every i.

        Args:
            gain: of a full share, float64 (m, k).
            demand: float64 (m,).
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
