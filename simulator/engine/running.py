"""The jobs that run, in an array without gaps."""

from __future__ import annotations

import numpy as np

from .rows import Long


class Running:
    """A set of jobs.

    Attributes:
        place: of each job in the array, -1 if it does not run, int64 (n,).
    """

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
