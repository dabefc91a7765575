"""How fast gangs run on GPUs that are apart: TopDRL's cluster, where jobs do not slow one another down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from .jobs import Long, Rows


class ApartRates:
    """Does what `Rates` does, by `Proximity`: rate and cost of communication as of the last start of each job."""

    def __init__(self, workload: Workload, fleet: Fleet, proximity: Proximity) -> None:
        self._model, self._fleet, self._proximity = workload.model, fleet, proximity
        self._new: dict[int, float] = {}
        self.rate, self.cost = np.zeros(workload.n_jobs), np.zeros(workload.n_jobs)

    def classes(self) -> tuple[Long, NDArray[np.bool_]]:
        """Return that all jobs are of one class, which can run everywhere."""
        return np.zeros(len(self._model), dtype=np.int64), np.ones((1, self._fleet.n_nodes), dtype=bool)

    def add(self, job: int, degree: int, rows: Rows) -> None:
        """Let a job run on `rows`."""
        self.cost[job] = cost = self._proximity.cost(self._fleet, rows.node.tolist(), rows.gpus.tolist())
        self.rate[job] = self._new[job] = self._proximity.rate(self._model[job], cost)

    def remove(self, job: int) -> None:
        """Let a job stop."""
        self._new.pop(job, None)

    def settle(self) -> dict[int, float]:
        """Return the rates of the jobs that have started."""
        found, self._new = self._new, {}
        return found
