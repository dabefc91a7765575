"""What every simulator returns: who held which GPUs when, and how fast the jobs got on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.workload import Workload

from .options import DegreeOptions


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The schedule of n jobs on m nodes, as r rows: a job holds GPUs of a node, all the while at one rate.

    A job on several nodes, or holding several GPUs that are told apart, has a row for each over the same time.

    Attributes:
        room: GPUs of each node, int32 (m,).
        start, finish: seconds, float64 (n,): when the job first ran and when it was done; infinite if it was rejected.
        row_node, row_gpu: int32 (r,); -1 if GPUs were only counted, or are not told apart.
        row_gpus, row_share: how many, int32 (r,), and the share of each of them, float64 (r,).
        row_start, row_end: seconds, float64 (r,).
        row_rate: seconds of `workload.duration` that the job gets on in a second, float64 (r,); 0 while it is restored.
        down_node, down_start, down_end: when nodes were down, int32 and float64 (f,); the end may be infinite.
        cost: seconds to restore a job that has run before.
        interval: seconds between checkpoints; after a failure a job resumes from the last one since it started.
        beside: cores and bytes of memory of each node, float64 (m, 2); no rows where they are not counted.
    """

    workload: Workload
    room: IntArray
    start: FloatArray
    finish: FloatArray
    row_job: IntArray
    row_node: IntArray
    row_gpu: IntArray
    row_gpus: IntArray
    row_share: FloatArray
    row_start: FloatArray
    row_end: FloatArray
    row_rate: FloatArray
    down_node: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    down_start: FloatArray = field(default_factory=lambda: np.zeros(0))
    down_end: FloatArray = field(default_factory=lambda: np.zeros(0))
    cost: float = 0.0
    interval: float = float("inf")
    options: DegreeOptions | None = None
    beside: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))

    @classmethod
    def unbroken(
        cls, workload: Workload, room: IntArray, start: FloatArray, finish: FloatArray, node: Any, gpus: Any,
        job: NDArray[np.integer] | None = None, *, gpu: Any = -1, rate: Any = 1.0, **more: Any,
    ) -> Self:  # fmt: skip
        """Return a schedule in which each job runs once: rows say who holds how many GPUs of which node all the while.

        `job`: of each row; by default each job has one. Other fields are those of the class.
        """
        begin, end = (start, finish) if job is None else (start[job], finish[job])
        job = np.arange(len(begin)) if job is None else job
        whole = (np.broadcast_to(np.asarray(x, dtype=np.int32), len(job)) for x in (job, node, gpu, gpus))
        shares = (np.broadcast_to(x, len(job)) for x in (1.0, rate))
        (one, speed), (of, on, at, many) = shares, whole
        return cls(workload, room, start, finish, of, on, at, many, one, begin, end, speed, **more)

    @property
    def admitted(self) -> NDArray[np.bool_]:
        """Which jobs ran, bool (n,)."""
        return np.isfinite(self.finish)

    @property
    def n_gpus(self) -> int:
        """GPUs of the cluster."""
        return int(self.room.sum())

    @property
    def held(self) -> FloatArray:
        """GPU seconds of each row, shares added up, float64 (r,)."""
        return np.asarray(self.row_gpus * self.row_share * (self.row_end - self.row_start))

    @property
    def useful(self) -> FloatArray:
        """The part of `held` in which the job got on, float64 (r,)."""
        return np.where(self.row_rate > 0, 1.0, 0.0)

    def alone(self, parts: FloatArray) -> FloatArray:
        """Return the seconds that each job that ran takes on a part of the cluster of its own, float64 (a,).

        On a part smaller than its gang a job takes longer in proportion, on a larger one it is no faster; if it has
        degrees to choose from, it takes the one that is best for that part.
        """
        work, ran, part = self.workload, self.admitted, self.n_gpus / parts
        if self.options is None:
            needs = work.gpus[ran] * np.asarray(work.share)[ran]
            return np.asarray(work.duration[ran] * np.maximum(1.0, needs / part))
        each = np.full(work.n_jobs, np.inf)
        each[ran] = part
        slower = np.maximum(
            1.0, self.options.gpus * np.repeat(np.asarray(work.share) / each, np.diff(self.options.first))
        )
        return np.asarray(np.minimum.reduceat(self.options.duration * slower, self.options.first[:-1])[ran])
