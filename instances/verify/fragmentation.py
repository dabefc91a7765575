"""The GPUs left over that tasks to come cannot use: fragmentation as FGD measures it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import FloatArray, sums
from ..placement import PlacementPlan, PlacementProblem
from ..placement.task import Task
from .verdict import TOLERANCE

Left = tuple[float, float, float]
"""Cores, bytes of memory and bytes/s of the NIC."""


class Fragmentation:
    """Expected fragments of nodes under the mix of a problem (FGD: Weng et al., USENIX ATC 2023, section 4).

    To a task k with GPUs, the fragment F(k) of a node is all that is free on its GPUs if k does not fit there, and else
    what is free on GPUs that have less free than the share of a GPU that k asks for. Expected is the sum over k of
    p(k) F(k), in GPUs, with p(k) the share of k in the mix. Tasks without GPUs use none anywhere and are not counted.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        """Take the mix and the nodes of `problem`."""
        fleet = problem.fleet
        self.kinds = [(x.task, x.share) for x in problem.expected() if x.task.demand.grants]
        self._type = [fleet.gpu_types[t] if g else "" for t, g in zip(fleet.gpu_type, fleet.gpus, strict=True)]
        self._has = list(zip(fleet.cpu.tolist(), fleet.memory.tolist(), fleet.nic.tolist(), strict=True))
        self._usable = np.asarray(fleet.usable).tolist()
        self._known: dict[object, float] = {}

    def __call__(self, node: int, free: Sequence[float], left: Left) -> float:
        """Return the expected fragments of `node`, in GPUs; nothing is free on one that is not usable.

        Args:
            node: its number.
            free: what is free of each GPU, from 0 to 1; GPUs that are taken may be missing.
            left: what else is free.
        """
        if not self._usable[node]:
            return 0.0
        key = self._type[node], self._has[node], tuple(free), left
        if key not in self._known:
            total = sum(free)
            self._known[key] = sum(p * (total - self._used(node, task, free, left)) for task, p in self.kinds)
        return self._known[key]

    def fits(self, node: int, task: Task, free: Sequence[float], left: Left) -> bool:
        """Return whether a task with GPUs fits `node`, given what is free there."""
        demand = task.demand
        enough = sum(x >= min(1.0, demand.gpu) - TOLERANCE for x in free) >= demand.grants
        accepted = not task.gpu_types or self._type[node] in task.gpu_types
        needs = demand.cpu, demand.memory, demand.nic
        return (
            enough
            and accepted
            and all(need <= x + TOLERANCE * has for need, x, has in zip(needs, left, self._has[node], strict=True))
        )

    def _used(self, node: int, task: Task, free: Sequence[float], left: Left) -> float:
        """Return the free GPUs that tasks like `task` can use, each for itself."""
        if not self.fits(node, task, free, left):
            return 0.0
        share = min(1.0, task.demand.gpu)
        return sum(x for x in free if x >= share - TOLERANCE)


def fragments(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return the expected fragments of each node under `plan`, which must be feasible, in GPUs, float64 (m,)."""
    fleet, jobs = problem.fleet, problem.jobs
    measure, m = Fragmentation(problem), fleet.n_nodes
    left = []
    for field in ("cpu", "memory", "nic"):
        worker, server = (
            np.array([getattr(getattr(job, task), field) for job in jobs]) for task in ("worker", "server")
        )
        need = worker[plan.job] * plan.workers + server[plan.job] * plan.servers
        left.append((getattr(fleet, field) - sums(plan.node, need, m)).tolist())
    used = np.zeros((m, int(fleet.gpus.max(initial=0))))
    share = np.array([min(job.worker.gpu, 1.0) for job in jobs])[plan.job][plan.grant_row]
    np.add.at(used, (plan.node[plan.grant_row], plan.grant_gpu), share)
    free = [np.maximum(0.0, 1 - used[n, :g]).tolist() for n, g in enumerate(fleet.gpus.tolist())]
    return np.array([measure(n, free[n], (left[0][n], left[1][n], left[2][n])) for n in range(m)])
