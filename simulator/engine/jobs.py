"""Which jobs wait, which run, and what they hold and held: arrays that grow and stay in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, ranges

from ..fit import Held

Long = NDArray[np.int64]


class Rows(NamedTuple):
    """Where a job runs; k rows.

    Attributes:
        gpus: how many GPUs it holds there, int64 (k,).
        gpu: which one, int64 (k,); -1 where GPUs are not told apart.
    """

    node: Long
    gpus: Long
    gpu: Long

    @classmethod
    def whole(cls, pairs: Iterable[tuple[int, int]]) -> Rows:
        """Return the rows of (node, how many GPUs)."""
        node, gpus = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        return cls(node, gpus, np.full(len(node), -1))

    def same(self, other: Rows) -> bool:
        """Return whether these are the same GPUs, in any order."""
        mine, theirs = (np.stack(rows)[:, np.lexsort(rows)] for rows in (self, other))
        return np.array_equal(mine, theirs)


class RunningSet:
    """A set of jobs; `place` in the array of each, -1 if it does not run, int64 (n,)."""

    def __init__(self, jobs: int) -> None:
        self._jobs = np.zeros(jobs, dtype=np.int64)
        self.place = np.full(jobs, -1, dtype=np.int64)
        self.size = 0

    @property
    def jobs(self) -> Long:
        """The jobs in no order, a view."""
        return self._jobs[: self.size]

    def add(self, job: int) -> None:
        """Put a job in."""
        self._jobs[self.size] = job
        self.place[job] = self.size
        self.size += 1

    def remove(self, job: int) -> None:
        """Take a job out."""
        at, self.size = int(self.place[job]), self.size - 1
        last = int(self._jobs[self.size])
        self._jobs[at], self.place[last], self.place[job] = last, at, -1


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


class RunLog:
    """Rows of all runs so far, and for every job those of its present one.

    Attributes:
        node, gpus, gpu: int64, longer than what is used.
        share: float64.
        first, count: int64 (n,), where the rows of each job's present run are.
        held: the same for compiled code.
        times: (job, first row, rows, start, end, rate) of what has passed.
    """

    def __init__(self, jobs: int) -> None:
        self.node, self.gpus, self.gpu = (np.zeros(max(1024, jobs), dtype=np.int64) for _ in range(3))
        self.share = np.ones(max(1024, jobs))
        self.used = 0
        self.first, self.count = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
        self.held = Held(self.first, self.count, self.node, self.gpus)
        self.times: list[tuple[int, int, int, float, float, float]] = []

    def write(self, job: int, rows: Rows, share: float | FloatArray = 1.0) -> None:
        """Make `rows` those that a job holds from now on."""
        k = len(rows.node)
        if self.used + k > len(self.node):
            most = 2 * len(self.node) + k
            for name in ("node", "gpus", "gpu", "share"):
                setattr(self, name, np.resize(getattr(self, name), most))
            self.held = Held(self.first, self.count, self.node, self.gpus)
        part = slice(self.used, self.used + k)
        self.node[part], self.gpus[part], self.gpu[part] = rows
        self.share[part] = share
        self.first[job], self.count[job] = self.used, k
        self.used += k

    def rows(self, job: int) -> Rows:
        """Return the rows that a running job holds."""
        part = slice(self.first[job], self.first[job] + self.count[job])
        return Rows(self.node[part], self.gpus[part], self.gpu[part])

    def table(self) -> dict[str, NDArray[np.int32] | FloatArray]:
        """Return all of it as the columns of an `Outcome`, rows with their times."""
        table = np.array(self.times, dtype=np.float64).reshape(-1, 6)
        count = table[:, 2].astype(np.int64)
        job, begin, end, rate = (np.repeat(table[:, i], count) for i in (0, 3, 4, 5))
        first = table[:, 1].astype(np.int64)
        at = ranges(first, first + count)
        whole = {"row_job": job, "row_node": self.node[at], "row_gpu": self.gpu[at], "row_gpus": self.gpus[at]}
        times = {"row_share": self.share[at], "row_start": begin, "row_end": end, "row_rate": rate}
        return {name: values.astype(np.int32) for name, values in whole.items()} | times
