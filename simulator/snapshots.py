"""Who is where at some instants: what speeds depend on, and what logs, predictors and truths have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, offsets, ranges

Long = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshots:
    """The running jobs at s instants, together n jobs with r rows: the tasks of a job on one server. All int64.

    Attributes:
        first: the jobs of snapshot i are ``first[i]`` to ``first[i + 1] - 1``, (s + 1,).
        kind: type of each job, (n,).
        rows: the rows of job j are ``rows[j]`` to ``rows[j + 1] - 1``, (n + 1,).
        server: of each row, (r,), no server twice in a job.
        workers, ps: how many workers and parameter servers of the job are there, (r,).
    """

    first: Long
    kind: Long
    rows: Long
    server: Long
    workers: Long
    ps: Long

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def of(self) -> Long:
        """The snapshot of each job, (n,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def job(self) -> Long:
        """The job of each row, (r,)."""
        return np.repeat(np.arange(len(self.kind)), np.diff(self.rows))

    def total(self, tasks: Long) -> Long:
        """Return the sum of `workers` or `ps` of each job, (n,)."""
        return np.asarray(np.bincount(self.job, tasks, len(self.kind)).astype(np.int64))

    def take(self, chosen: Long) -> tuple[Snapshots, Long]:
        """Return some of the snapshots, and which jobs these are of all."""
        jobs = ranges(self.first[chosen], self.first[chosen + 1])
        return self._only(offsets(np.diff(self.first)[chosen]), jobs), jobs

    def keep(self, jobs: Long) -> tuple[Snapshots, Long]:
        """Return the snapshots with these jobs alone, ascending, and which they are of all."""
        return self._only(offsets(np.bincount(self.of[jobs], minlength=len(self))), jobs), jobs

    def _only(self, first: Long, jobs: Long) -> Snapshots:
        at, rows = ranges(self.rows[jobs], self.rows[jobs + 1]), offsets(np.diff(self.rows)[jobs])
        return Snapshots(first, self.kind[jobs], rows, self.server[at], self.workers[at], self.ps[at])

    @classmethod
    def of_rows(cls, kind: NDArray[np.integer], rows: Sequence[Mapping[int, Sequence[int]]]) -> Snapshots:
        """Return one snapshot of jobs by their types and rows: server -> workers, parameter servers."""
        flat = [(server, w, p) for mine in rows for server, (w, p) in mine.items()]
        columns = np.ascontiguousarray(np.array(flat, dtype=np.int64).reshape(-1, 3).T)
        count = np.array([len(mine) for mine in rows], dtype=np.int64)
        return cls(np.array([0, len(rows)]), kind.astype(np.int64), offsets(count), *columns)

    @classmethod
    def join(cls, parts: Sequence[Snapshots]) -> Snapshots:
        """Return the snapshots of all parts, one after the other."""
        kind, server, workers, ps = (
            np.concatenate([getattr(x, name) for x in parts]) for name in ("kind", "server", "workers", "ps")
        )
        first, rows = (
            offsets(np.concatenate([np.diff(getattr(x, name)) for x in parts])) for name in ("first", "rows")
        )
        return cls(first, kind, rows, server, workers, ps)


class Truth(Protocol):
    """How fast jobs run; a predictor of speeds is one too.

    `simulator.interference.truths` has what the simulator may be run by; policies never see these.
    """

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
