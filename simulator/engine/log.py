"""What jobs held, written down as it happens: rows in arrays that grow, and the times that refer to them."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.workload import Workload

from ..trace.menu import Menu
from ..trace.outcome import Outcome
from .rows import Rows


class Log:
    """Rows of all runs so far, and for every job those of its present one.

    Attributes:
        node, gpus, gpu: int64, longer than what is used.
        share: float64.
        first, count: int64 (n,), where the rows of each job's present run are.
        times: (job, first row, rows, start, end, rate) of what has passed.
    """

    def __init__(self, jobs: int) -> None:
        self.node, self.gpus, self.gpu = (np.zeros(max(1024, jobs), dtype=np.int64) for _ in range(3))
        self.share = np.ones(max(1024, jobs))
        self.used = 0
        self.first, self.count = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
        self.times: list[tuple[int, int, int, float, float, float]] = []

    def write(self, job: int, rows: Rows, share: float | FloatArray = 1.0) -> None:
        """Make `rows` those that a job holds from now on."""
        k = len(rows.node)
        if self.used + k > len(self.node):
            for name in ("node", "gpus", "gpu", "share"):
                setattr(self, name, np.resize(getattr(self, name), 2 * len(self.node) + k))
        part = slice(self.used, self.used + k)
        self.node[part], self.gpus[part], self.gpu[part] = rows
        self.share[part] = share
        self.first[job], self.count[job] = self.used, k
        self.used += k

    def rows(self, job: int) -> Rows:
        """Return the rows that a running job holds."""
        part = slice(self.first[job], self.first[job] + self.count[job])
        return Rows(self.node[part], self.gpus[part], self.gpu[part])

    def outcome(
        self,
        workload: Workload,
        room: IntArray,
        start: FloatArray,
        finish: FloatArray,
        downs: list[tuple[int, float, float]],
        cost: float,
        interval: float,
        menu: Menu | None,
    ) -> Outcome:
        """Return all of it as rows with their times."""
        table = np.array(self.times, dtype=np.float64).reshape(-1, 6)
        count = table[:, 2].astype(np.int64)
        job, begin, end, rate = (np.repeat(table[:, i], count) for i in (0, 3, 4, 5))
        inside = np.arange(len(job)) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(table[:, 1].astype(np.int64), count) + inside
        down = np.array(downs, dtype=np.float64).reshape(-1, 3)
        return Outcome(
            workload=workload,
            room=room,
            start=start,
            finish=finish,
            row_job=job.astype(np.int32),
            row_node=self.node[at].astype(np.int32),
            row_gpu=self.gpu[at].astype(np.int32),
            row_gpus=self.gpus[at].astype(np.int32),
            row_share=self.share[at],
            row_start=begin,
            row_end=end,
            row_rate=rate,
            down_node=down[:, 0].astype(np.int32),
            down_start=down[:, 1],
            down_end=down[:, 2],
            cost=cost,
            interval=interval,
            menu=menu,
        )
