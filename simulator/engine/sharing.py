"""Shared GPUs: which job has how much of which, told apart."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload

from ..fit import Nodes
from .jobs import Rows, RunLog, RunningSet
from .kernels import FreeShares


class GpuSharing:
    """What is left of each GPU.

    By default a job goes where its share is left. A policy may put more on a GPU: then all on it are squeezed in
    proportion to what they asked for, so that no GPU is given out more than once.

    Attributes:
        left: shares, float64 (m, most GPUs of a node); below 0 where jobs are squeezed, minus infinity beyond a node's
            GPUs.
        at: jobs on each GPU of each node.
        crowded: (node, GPU) of those that several jobs are on.
    """

    def __init__(self, workload: Workload, fleet: Fleet) -> None:
        self.share = np.asarray(workload.share)
        most = int(fleet.gpus.max())
        self.left = np.where(np.arange(most) < fleet.gpus[:, None], 1.0, -np.inf)
        self._kernel = FreeShares(self.left)
        self.at: list[list[list[int]]] = [[[] for _ in range(g)] for g in fleet.gpus.tolist()]
        self.crowded: set[tuple[int, int]] = set()
        self._touched: set[tuple[int, int]] = set()

    def find(self, job: int, need: int, nodes: Nodes) -> Rows | None:
        """Return where `need` shares fit by default: see `FreeShares`."""
        rows = self._kernel.find(job, need, float(self.share[job]), nodes)
        return None if rows is None else Rows(rows[0], np.ones(need, dtype=np.int64), rows[1])

    def change(self, job: int, rows: Rows, free: FloatArray, unit: FloatArray, sign: int) -> None:
        """Put a job on its GPUs (-1) or take it off (1)."""
        for node, gpu in zip(rows.node.tolist(), rows.gpu.tolist(), strict=True):
            here = self.at[node][gpu]
            if sign < 0:
                free[node, 0] -= not here
                here.append(job)
            else:
                here.remove(job)
                free[node, 0] += not here
            free[node, 1:] += sign * unit[1:]
            # added up afresh, so that nothing is left over by rounding
            self.left[node, gpu] = 1.0 - sum(float(self.share[j]) for j in here)
            self._touched.add((node, gpu))
            if len(here) > 1:
                self.crowded.add((node, gpu))
            else:
                self.crowded.discard((node, gpu))

    def changes(self, log: RunLog, running: RunningSet) -> dict[int, FloatArray]:
        """Return the shares of the jobs for which they changed, one for each of their rows."""
        jobs = {j for node, gpu in self._touched for j in self.at[node][gpu]}
        self._touched.clear()
        found = {}
        for job in sorted(jobs):
            if running.place[job] < 0:
                continue
            rows = log.rows(job)
            asked = np.maximum(1.0 - self.left[rows.node, rows.gpu], 1.0)
            share = self.share[job] / asked
            part = slice(log.first[job], log.first[job] + log.count[job])
            if not np.array_equal(share, log.share[part]):
                found[job] = share
        return found
