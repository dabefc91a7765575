"""Dominant resource fairness."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload

from ..rows import Long
from ..view import View


class DRF:
    """Serve the tenant whose dominant share is least.

    That is the largest of its shares of the cluster's GPUs, cores and memory (Ghodsi et al., "Dominant resource
    fairness", NSDI 2011). By progressive filling: the jobs of a tenant go in the order of their submission, and each
    counts what its tenant's earlier ones would hold. A tenant is a queue of the trace.
    """

    def __init__(self) -> None:
        self._of: Workload | None = None
        self._tenant: Long = np.zeros(0, dtype=np.int64)
        self._asks: FloatArray = np.zeros((0, 3))

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the dominant share that the tenant has when it is the job's turn."""
        if self._of is not view.workload:
            self._learn(view)
        held = np.zeros((int(self._tenant.max()) + 1, self._asks.shape[1]))
        waits = np.ones(len(self._tenant), dtype=bool)
        waits[view.running] = False
        np.add.at(held, self._tenant[view.running], self._asks[view.running])
        order = np.lexsort((view.rank[jobs], waits[jobs], self._tenant[jobs]))
        tenant, asks = self._tenant[jobs[order]], self._asks[jobs[order]] * waits[jobs[order], None]
        before = np.cumsum(asks, axis=0) - asks
        first = np.flatnonzero(np.diff(tenant, prepend=-1))
        before -= np.repeat(before[first], np.diff(np.append(first, len(tenant))), axis=0)
        share = np.empty(len(jobs))
        share[order] = (held[tenant] + before).max(axis=1)
        return share

    def _learn(self, view: View) -> None:
        work, fleet = view.workload, view.fleet
        self._of = work
        self._tenant = np.unique(np.array(work.queue), return_inverse=True)[1].astype(np.int64)
        pairs = ((work.gpus * np.asarray(work.share), fleet.gpus), (work.cpu, fleet.cpu), (work.memory, fleet.memory))
        columns = [np.asarray(asks) / max(float(has.sum()), 1e-300) for asks, has in pairs if np.any(asks)]
        self._asks = np.stack(columns, axis=1)
