"""How fast jobs run beside one another: the cost model of placement, brought up to date where something changed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.solvers.placement.costs import Costs
from gangplan.solvers.placement.prepare import PreparedBatch

from ..options import DegreeOptions
from .jobs import Long, Rows


class RelativeRates:
    """The rate of each running job as a share of its best: alone, on as few of the best nodes as hold it.

    Every option of a job is a job of the cost model, as its best rate depends on the degree. A job that comes or goes
    touches only those it shares nodes or links with.

    Attributes:
        rate: of each job as of the last `settle`, float64 (n,).
    """

    def __init__(self, workload: Workload, fleet: Fleet, options: DegreeOptions, speeds: SpeedModel) -> None:
        for j, model in enumerate(workload.model):
            if model not in speeds.models:
                raise InstanceError(f"model[{j}]", f"{model!r} has no speed")
        share, names = np.asarray(workload.share).tolist(), workload.names
        owner = np.repeat(np.arange(options.n_jobs), np.diff(options.first)).tolist()
        gangs = (
            GangJob(f"{names[j]} on {d}", workload.model[j], (d,), Demand(share[j]))
            for j, d in zip(owner, options.gpus.tolist(), strict=True)
        )
        self._batch = PreparedBatch(PlacementProblem(fleet, tuple(gangs), speeds))
        self._menu, self._model, self._owner = options, self._batch.model, owner
        self._costs = Costs(self._batch)
        self._cards: dict[int, set[tuple[int, int]]] = {}
        self._entry = np.full(options.n_jobs, -1, dtype=np.int64)
        self.rate = np.zeros(options.n_jobs)

    def classes(self) -> tuple[Long, NDArray[np.bool_]]:
        """Return the model of each job, int64 (n,), and on which nodes each model can run, bool (models, m)."""
        problem = self._batch.problem
        able = np.zeros((len(problem.speeds.models), problem.fleet.n_nodes), dtype=bool)
        _, sample = np.unique(self._model, return_index=True)
        able[self._model[sample]] = np.isfinite(self._batch.alone[sample][:, self._batch.kind])
        return self._model[self._menu.first[:-1]].astype(np.int64), able

    def add(self, job: int, degree: int, rows: Rows) -> None:
        """Let a job run on `rows`."""
        e = self._menu.entry(job, degree)
        self._entry[job] = e
        tasks: dict[int, tuple[int, int]] = {}  # node -> (workers, servers); jobs of a trace have no servers
        for node, gpus in zip(rows.node.tolist(), rows.gpus.tolist(), strict=True):
            tasks[node] = (tasks.get(node, (0, 0))[0] + gpus, 0)
        self._cards[e] = {(n, g) for n, g in zip(rows.node.tolist(), rows.gpu.tolist(), strict=True) if g >= 0}
        self._costs.enter(e, tasks)
        self._meet(tasks)

    def remove(self, job: int) -> None:
        """Let a job stop."""
        e = int(self._entry[job])
        del self._cards[e]
        self._meet(self._costs.leave(e))
        self._entry[job] = -1

    def settle(self) -> dict[int, float]:
        """Return the rates of the jobs for which they may have changed."""
        found = {}
        for e in sorted(self._costs.settle()):
            workers = sum(w for w, _ in self._costs.rows[e].values())
            if workers:
                job = self._owner[e]
                found[job] = self.rate[job] = workers / (float(self._batch.best[e]) * self._costs.step(e))
        return found

    def _meet(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            here = self._costs.at[node]
            self._costs.meets[node] = {e: {g for n, g in self._cards[e] if n == node} for e in here}


class ApartRates:
    """Do what `RelativeRates` does on TopDRL's cluster, where gangs run slower apart, and no job slows another down.

    Rate and cost of communication are as of the last start of each job, by `Proximity`.
    """

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
