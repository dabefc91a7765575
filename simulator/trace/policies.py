"""Policies that fix the order of the queue when a job arrives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload

POLICIES: dict[str, Callable[[Workload], FloatArray]] = {
    "fifo": lambda workload: workload.submit,
    "sjf": lambda workload: workload.duration,
    "ljf": lambda workload: -workload.duration,
    "smallest": lambda workload: workload.gpus.astype(float),
    "least_work": lambda workload: workload.gpus * workload.duration,
}
"""By name: what the queue is ordered by, float64 (n,), the least first; ties by submit time, then as in the trace."""


def ranks(workload: Workload, policy: str) -> NDArray[np.int64]:
    """Return the place of each job in the order of `policy`, int64 (n,)."""
    order = np.argsort(workload.submit, kind="stable")
    order = order[np.argsort(POLICIES[policy](workload)[order], kind="stable")]
    rank = np.empty(workload.n_jobs, dtype=np.int64)
    rank[order] = np.arange(workload.n_jobs)
    return rank
