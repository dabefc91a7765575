"""The jobs that wait, in the order of their keys; ties by submit time, then by place in the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .rows import Long


class Queue:
    """An array kept in order.

    Args:
        key: of every job, float64 (n,); a waiting job's may change only if `sort` is called.
        rank: of every job by submit time and place in the trace, int64 (n,).
    """

    def __init__(self, key: FloatArray, rank: Long) -> None:
        self._key, self._rank = key, rank
        self._jobs, self._keys = np.zeros(1024, dtype=np.int64), np.zeros(1024)
        self.size = 0

    @property
    def jobs(self) -> Long:
        """The jobs in order, a view."""
        return self._jobs[: self.size]

    def add(self, job: int) -> int:
        """Insert a job by its key; return its place."""
        n, key = self.size, self._key[job]
        if n == len(self._jobs):
            self._jobs, self._keys = np.resize(self._jobs, 2 * n), np.resize(self._keys, 2 * n)
        keys, jobs = self._keys, self._jobs
        at = int(keys[:n].searchsorted(key, "right"))
        if at and keys[at - 1] == key and self._rank[jobs[at - 1]] > self._rank[job]:
            low = int(keys[:n].searchsorted(key, "left"))
            at = low + int(self._rank[jobs[low:at]].searchsorted(self._rank[job]))
        jobs[at + 1 : n + 1], keys[at + 1 : n + 1] = jobs[at:n], keys[at:n]
        jobs[at], keys[at] = job, key
        self.size = n + 1
        return at

    def remove(self, at: int) -> None:
        """Take out the job at a place."""
        n = self.size
        self._jobs[at : n - 1], self._keys[at : n - 1] = self._jobs[at + 1 : n], self._keys[at + 1 : n]
        self.size = n - 1

    def sort(self) -> None:
        """Put all in the order of their present keys."""
        jobs = self.jobs
        jobs[:] = in_order(jobs, self._key, self._rank)
        self._keys[: self.size] = self._key[jobs]


def in_order(jobs: NDArray[np.int64], key: FloatArray, rank: Long) -> Long:
    """Return jobs by their keys, ties by rank."""
    return np.asarray(jobs[np.lexsort((rank[jobs], key[jobs]))])
