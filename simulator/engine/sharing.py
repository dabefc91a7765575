"""Shared GPUs: which job has how much of which, told apart."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.solvers.compiled.kernel import Floats2, Ints, kernel

from ..fit import SLACK, Gangs, Nodes, able
from .jobs import Log, Rows, Running


class Sharing:
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
        self.at: list[list[list[int]]] = [[[] for _ in range(g)] for g in fleet.gpus.tolist()]
        self.crowded: set[tuple[int, int]] = set()
        self._touched: set[tuple[int, int]] = set()

    def find(self, job: int, need: int, nodes: Nodes, gangs: Gangs) -> Rows | None:
        """Return where `need` shares fit by default: see `find_shares`."""
        node, gpu = np.empty(need, dtype=np.int64), np.empty(need, dtype=np.int64)
        if not find_shares(self.left, nodes, gangs, job, need, float(self.share[job]), node, gpu):
            return None
        return Rows(node, np.ones(need, dtype=np.int64), gpu)

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

    def changes(self, log: Log, running: Running) -> dict[int, FloatArray]:
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


@kernel
def find_shares(  # noqa: PLR0912, read from top to bottom
    left: Floats2, nodes: Nodes, gangs: Gangs, job: int, need: int, share: float, node: Ints, gpu: Ints
) -> bool:
    """Write where `need` shares, each of a GPU of its own, go to `node` and `gpu`; return whether they fit.

    Consolidated: on the node with least left that fits, there on the GPUs with least left; a job larger than any node,
    for its cores and memory too, on nodes that hold as much of it as if they were empty. Otherwise on whatever has it,
    lowest index first.
    """
    m, most = left.shape
    free, unit, ok, consolidate = nodes.free, gangs.unit[job], nodes.ok[gangs.kind[job]], nodes.consolidate
    room = np.zeros(m, dtype=np.int64)
    biggest = 0
    size, holds = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    for n in range(m):
        for g in range(most):
            size[n] += left[n, g] > -np.inf
            room[n] += left[n, g] >= share - SLACK
        holds[n] = size[n]
        if free.shape[1] > 1:
            room[n] = min(room[n], able(free, unit, n, most))
            holds[n] = min(holds[n], able(nodes.whole, unit, n, most))
        room[n], holds[n] = room[n] * ok[n], holds[n] * ok[n]
        biggest = max(biggest, holds[n])
    if consolidate and need <= biggest:
        best, least = -1, np.inf
        for n in range(m):
            if room[n] >= need:
                total = 0.0
                for g in range(size[n]):
                    total += max(left[n, g], 0.0)
                if total < least - SLACK:
                    best, least = n, total
        if best < 0:
            return False
        order = np.argsort(left[best, : size[best]], kind="mergesort")
        k = 0
        for g in order:
            if k < need and left[best, g] >= share - SLACK:
                node[k], gpu[k] = best, g
                k += 1
        return True
    k = 0
    for n in range(m):
        here = min(need - k, room[n])
        if consolidate and room[n] < holds[n]:
            continue
        for g in range(size[n]):
            if here > 0 and left[n, g] >= share - SLACK:
                node[k], gpu[k] = n, g
                k += 1
                here -= 1
    return k == need
