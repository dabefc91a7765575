"""Priority classes before the order of any policy, as every batch system has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload

from ..jobs import Long
from ..policy import View
from .orders import Fixed


class Classes:
    """Put jobs of a higher priority first, and those of one priority in the order of `policy`.

    A part that stands before `policy` in an `EngineScheduler`: whatever else there is to decide is left to it. Where
    that stops jobs, those of a higher class stop those of lower ones.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy if hasattr(policy, "select") else Fixed()
        self.steady = isinstance(self._policy, Fixed)
        self._of: Workload | None = None
        self._keys: FloatArray = np.zeros(0)

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Return the place of each job among all, equal ones of one class having the same."""
        if not self.steady:
            return in_classes(np.asarray(view.workload.priority)[jobs], self._policy.select(view, jobs))
        if self._of is not view.workload:
            every = np.arange(view.workload.n_jobs)
            self._of = view.workload
            self._keys = in_classes(np.asarray(view.workload.priority), self._policy.select(view, every))
        return self._keys[jobs]


def in_classes(priority: Long, keys: FloatArray) -> FloatArray:
    """Return numbers that are ordered by priority, the highest first, then by `keys`; float64 (n,)."""
    order = np.lexsort((keys, -priority.astype(np.int64)))
    apart = np.ones(len(order), dtype=bool)
    apart[1:] = (np.diff(priority[order]) != 0) | (keys[order][1:] != keys[order][:-1])
    rank = np.empty(len(order))
    rank[order] = np.cumsum(apart)
    return rank
