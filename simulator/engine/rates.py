"""How fast jobs run beside one another: the cost model of placement, brought up to date where something changed."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.solvers.placement.costs import Costs
from gangplan.solvers.placement.prepare import Batch

from ..options import DegreeOptions
from .jobs import Long, Rows

Tasks = dict[int, tuple[int, int]]
"""Node -> (workers, servers); jobs of a trace have no servers."""


class Rates:
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
        self._batch = Batch(PlacementProblem(fleet, tuple(gangs), speeds))
        n = len(owner)
        self._menu, self._model, self._owner = options, self._batch.model, owner
        self._rows: list[Tasks] = [{} for _ in range(n)]
        self._at: defaultdict[int, Tasks] = defaultdict(dict)
        self._cards: dict[int, set[tuple[int, int]]] = {}
        self._meets: dict[int, dict[int, set[int]]] = {}
        self._crossers: list[defaultdict[int, set[int]]] = [defaultdict(set) for _ in self._batch.bandwidth]
        self._touched: list[list[set[int]]] = [[] for _ in range(n)]
        self._costs = Costs(self._batch, self._rows, self._at, self._meets, self._crossers, self._touched)
        self._entry = np.full(options.n_jobs, -1, dtype=np.int64)
        self._compute, self._sync = np.zeros(n), np.zeros(n)
        self._slower: set[int] = set()
        self._later: set[int] = set()
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
        tasks: Tasks = {}
        for node, gpus in zip(rows.node.tolist(), rows.gpus.tolist(), strict=True):
            tasks[node] = (tasks.get(node, (0, 0))[0] + gpus, 0)
        self._rows[e] = tasks
        self._cards[e] = {(n, g) for n, g in zip(rows.node.tolist(), rows.gpu.tolist(), strict=True) if g >= 0}
        for node, task in tasks.items():
            here = self._at[node]
            self._slower.update(here)
            here[e] = task
            self._meet(node)
        for level, members in enumerate(self._batch.members[:-1]):
            touched = {members[node] for node in tasks}
            if len(touched) == 1:
                break
            self._touched[e].append(touched)
            for member in touched:
                self._later |= self._crossers[level][member]
                self._crossers[level][member].add(e)
        self._slower.add(e)
        self._later.add(e)

    def remove(self, job: int) -> None:
        """Let a job stop."""
        e = int(self._entry[job])
        tasks, self._rows[e] = self._rows[e], {}
        for node in tasks:
            del self._at[node][e]
            self._slower.update(self._at[node])
        del self._cards[e]
        for node in tasks:
            self._meet(node)
        for level, touched in enumerate(self._touched[e]):
            for member in touched:
                self._crossers[level][member].discard(e)
                self._later |= self._crossers[level][member]
        self._touched[e] = []
        self._slower.discard(e)
        self._later.discard(e)
        self._entry[job] = -1

    def settle(self) -> dict[int, float]:
        """Return the rates of the jobs for which they may have changed."""
        for e in self._slower:
            self._compute[e] = self._costs.compute(e)
        for e in self._later:
            self._sync[e] = self._costs.sync(e)
        found = {}
        for e in sorted(self._slower | self._later):
            overlap = float(self._batch.overlap[e])
            step = max(self._compute[e], (1 - overlap) * self._compute[e] + self._sync[e])
            workers = sum(w for w, _ in self._rows[e].values())
            job = self._owner[e]
            found[job] = self.rate[job] = workers / (float(self._batch.best[e]) * float(step))
        self._slower.clear()
        self._later.clear()
        return found

    def _meet(self, node: int) -> None:
        self._meets[node] = {e: {g for n, g in self._cards[e] if n == node} for e in self._at[node]}


class ApartRates:
    """Do what `Rates` does on TopDRL's cluster, where gangs run slower apart, and no job slows another down.

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
