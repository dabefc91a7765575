"""A batch of gangs on a cluster, with what is placed so far; as one gang sees the nodes, if it is its turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, PlacementPlan, PlacementProblem
from gangplan.instances.placement.job import COLLECTIVES
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.placement.rate import model_of

from .encoding import Encoding, Floats, Index, first_positive, log_over, mean, over
from .topology import Groups, add_racks, groups


class PlacementEncoder:
    """Encodes one problem again and again as its gangs are placed: what does not change is worked out once."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        fleet = problem.fleet
        self.groups: Groups = groups(fleet.topology)
        self.model: Index = model_of(problem).astype(np.int64)
        self.fastest = problem.fastest()
        self.seconds = _by_kind(problem)
        self.demand = np.array([_demand(x.worker) for x in problem.jobs])
        self.server = np.array([_demand(x.server) for x in problem.jobs])
        self.whole = np.stack([fleet.gpus.astype(float), fleet.cpu, fleet.memory, fleet.nic], axis=1)
        self.whole[~np.asarray(fleet.usable)] = 0.0
        self.labels = {name: fleet.labelled[i] for i, name in enumerate(fleet.labels)}
        self.index = {x.name: i for i, x in enumerate(problem.jobs)}
        self.jobs = _jobs(problem, self.fastest, self.model, self.demand)
        pairs = [(i, self.index[name]) for i, x in enumerate(problem.jobs) for name in x.apart]
        self._running = self._rows_of_running()
        self.apart = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def __call__(self, plan: PlacementPlan | None = None, gang: int | None = None) -> Encoding:
        """Encode the problem with the rows of `plan` placed, as the job `gang` sees it; see `encode_placement`.

        Raises:
            InstanceError: if there is no such job.
        """
        problem, encoding = self.problem, Encoding()
        if gang is not None and not 0 <= gang < len(problem.jobs):
            raise InstanceError("gang", f"{gang!r} is not one of the {len(problem.jobs)} jobs")
        rows = self._running if plan is None else _rows(plan)
        free = self._free(rows)
        m = problem.fleet.n_nodes
        load = self._load(rows)
        columns = self._nodes(rows, free, load) | self._seen(rows, free, gang)
        encoding.add("nodes", m, columns)
        placed = np.bincount(rows[0], weights=rows[2], minlength=len(problem.jobs))
        turn = np.arange(len(problem.jobs)) == (-1 if gang is None else gang)
        own = {"placed": over(placed, self.jobs["least"]), "turn": turn, **self.jobs["columns"]}
        encoding.add("jobs", len(problem.jobs), own)
        self._add_racks(encoding, free, load)
        self._add_kinds(encoding, free)
        share = {
            "workers": over(rows[2], np.maximum(placed[rows[0]], 1)),
            "gpus": over(rows[2] * self.demand[rows[0], 0], self.whole[rows[1], 0]),
        }
        encoding.join(("jobs", "on", "nodes"), rows[0], rows[1], share)
        encoding.join(("jobs", "apart", "jobs"), *self.apart)
        about: dict[str, Any] = {name: float(problem.goal == name) for name in GOALS}
        asked = float((self.jobs["least"] * self.demand[:, 0]).sum())
        about |= {
            "free": over(free[:, 0].sum(), self.whole[:, 0].sum()),
            "asked": log_over(asked, self.whole[:, 0].sum()),
            "placed": mean(placed > 0),
        }
        encoding.add("problem", 1, about)
        return encoding

    def _rows_of_running(self) -> Index:
        node = {name: i for i, name in enumerate(self.problem.fleet.names)}
        found = [
            (self.index[x.job], node[name], w, p)
            for x in self.problem.running
            for name, w, p in zip(x.nodes, x.workers, x.servers, strict=True)
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 4).T

    def _free(self, rows: Index) -> Floats:
        """Return what of GPUs, cores, bytes and bytes/s nobody holds, (m, 4)."""
        job, node, workers, servers = rows
        used = workers[:, None] * self.demand[job] + servers[:, None] * self.server[job]
        free = self.whole.copy()
        np.subtract.at(free, node, used)
        return np.asarray(np.maximum(free, 0.0))

    def _load(self, rows: Index) -> Floats:
        """Return the duties of the gangs that leave each node, and then of those that leave each group, (m + g,)."""
        job, node = rows[:2]
        m, found = self.problem.fleet.n_nodes, self.groups
        load = np.zeros(m + len(found.level))
        if not len(job):
            return load
        duty = self.problem.speeds.duty[self.model]
        members = [node, *(found.of[i][node] + m for i in range(len(found.of)))]
        for member in members[:-1]:
            one, at = np.divmod(np.unique(job * len(load) + member), len(load))
            crosses = np.bincount(one, minlength=len(duty))[one] > 1
            np.add.at(load, at[crosses], duty[one[crosses]])
        return load

    def _nodes(self, rows: Index, free: Floats, load: Floats) -> dict[str, Any]:
        fleet, whole = self.problem.fleet, self.whole
        most = whole.max(axis=0, initial=0.0)
        here = np.bincount(rows[1], minlength=fleet.n_nodes)
        nic = fleet.topology.levels[0].bandwidth
        return {
            "gpus": over(whole[:, 0], most[0]),
            "free": over(free[:, 0], whole[:, 0]),
            "free_gpus": over(free[:, 0], most[0]),
            "cores": over(free[:, 1], most[1]),
            "memory": over(free[:, 2], most[2]),
            "nic": over(free[:, 3], most[3]),
            "link": log_over(np.where(np.isfinite(fleet.link), fleet.link, 0.0), nic),
            "usable": fleet.usable,
            "jobs": np.log1p(here),
            "load": np.log1p(load[: fleet.n_nodes]),
        }

    def _seen(self, rows: Index, free: Floats, gang: int | None) -> dict[str, Any]:
        """Return the columns of nodes that hold for the gang whose turn it is; zeros if it is nobody's."""
        names = ("allowed", "fits", "fits_all", "slower", "suffers", "harms", "mine", "near")
        if gang is None:
            return dict.fromkeys(names, 0.0)
        problem, job, m = self.problem, self.problem.jobs[gang], self.problem.fleet.n_nodes
        others = rows[:, rows[0] != gang]
        mine = np.bincount(rows[1][rows[0] == gang], weights=rows[2][rows[0] == gang], minlength=m)
        fits = np.full(m, np.inf)
        for i in range(4):
            if self.demand[gang, i] > 0:
                fits = np.minimum(fits, np.floor(free[:, i] / self.demand[gang, i] * (1 + 1e-9)))
        most = job.most_per_node
        fits = np.minimum(fits, max(job.workers) if most is None else np.maximum(most - mine, 0))
        seconds = np.where(problem.fleet.gpus > 0, self.seconds[gang, np.maximum(problem.fleet.gpu_type, 0)], np.inf)
        ok = np.asarray(problem.fleet.usable) & np.isfinite(seconds)
        for name in job.requires:
            ok &= self.labels[name]
        foes = [i for i, x in enumerate(problem.jobs) if x.whole_nodes or job.name in x.apart or x.name in job.apart]
        ok[others[1] if job.whole_nodes else others[1][np.isin(others[0], foes)]] = False
        host, k, theirs = problem.speeds.host, self.model[gang], self.model[others[0]]
        near = np.zeros(m)
        for level in self.groups.of:
            near += np.isin(level, level[mine > 0])
        return {
            "allowed": ok & (fits >= 1),
            "fits": np.where(ok, over(fits, job.gang), 0.0),
            "fits_all": ok & (fits >= job.gang),
            "slower": np.where(ok, log_over(np.where(ok, seconds, 0.0), self.fastest[gang]), 0.0),
            "suffers": np.log1p(np.bincount(others[1], weights=host[k, theirs], minlength=m)),
            "harms": np.log1p(np.bincount(others[1], weights=host[theirs, k], minlength=m)),
            "mine": over(mine, job.gang),
            "near": near / len(self.groups.of),
        }

    def _add_racks(self, encoding: Encoding, free: Floats, load: Floats) -> None:
        found, m = self.groups, self.problem.fleet.n_nodes
        count = len(found.level)
        has, left, most = np.zeros(count), np.zeros(count), np.zeros(count)
        for level in found.of:
            has += np.bincount(level, weights=self.whole[:, 0], minlength=count)
            left += np.bincount(level, weights=free[:, 0], minlength=count)
            np.maximum.at(most, level, free[:, 0])
        nic = float(found.bandwidth[0])
        columns = {
            "bandwidth": log_over(found.bandwidth, nic),
            "free": over(left, has),
            "largest": over(most, self.whole[:, 0].max(initial=0.0)),
            "load": np.log1p(load[m:]),
        }
        add_racks(encoding, found, "nodes", columns)

    def _add_kinds(self, encoding: Encoding, free: Floats) -> None:
        fleet = self.problem.fleet
        count = len(fleet.gpu_types)
        node = np.flatnonzero(fleet.gpus > 0)
        kind = fleet.gpu_type[node]
        has = np.bincount(kind, weights=self.whole[node, 0], minlength=count)
        left = np.bincount(kind, weights=free[node, 0], minlength=count)
        encoding.add("kinds", count, {"gpus": over(has, self.whole[:, 0].sum()), "free": over(left, has)})
        encoding.join(("nodes", "of", "kinds"), node, kind)
        j, t = np.nonzero(np.isfinite(self.seconds))
        encoding.join(("jobs", "run", "kinds"), j, t, {"slower": log_over(self.seconds[j, t], self.fastest[j])})


def encode_placement(problem: PlacementProblem, plan: PlacementPlan | None = None, gang: int | None = None) -> Encoding:
    """Encode a placement problem: types ``jobs``, ``nodes``, ``kinds``, ``racks``, ``problem``.

    Relations, each with its reverse: jobs are ``on`` nodes, ``apart`` from jobs, ``run`` on kinds; nodes are ``of``
    kinds and ``in`` racks. Of the nodes, the columns from ``allowed`` on are what the gang in hand sees: whether and
    how many of its workers fit, how fast, beside whom, and how near to those of them that are placed.

    Args:
        problem: the problem.
        plan: what is placed so far, by default the jobs that run already; it need not be complete.
        gang: index of the job in hand, None for none.
    """
    return PlacementEncoder(problem)(plan, gang)


def _demand(task: Demand) -> tuple[float, float, float, float]:
    return task.gpu, task.cpu, task.memory, task.nic


def _rows(plan: PlacementPlan) -> Index:
    """Return job, node, workers and servers of each row, int64 (4, r)."""
    return np.stack([plan.job, plan.node, plan.workers, plan.servers]).astype(np.int64)


def _by_kind(problem: PlacementProblem) -> Floats:
    """Return the seconds a worker of each job computes on each type of GPU, (J, types)."""
    fleet, count = problem.fleet, len(problem.fleet.gpu_types)
    found = np.full((len(problem.jobs), count), np.inf)
    nodes = np.flatnonzero(fleet.gpus > 0)
    kinds, first = np.unique(fleet.gpu_type[nodes], return_index=True)
    if len(kinds):
        found[:, kinds] = problem.compute_at(np.arange(len(problem.jobs))[:, None], nodes[first][None, :])
    return found


def _jobs(problem: PlacementProblem, fastest: Floats, model: Index, demand: Floats) -> dict[str, Any]:
    """Return what does not change of the jobs."""
    fleet, speeds, jobs = problem.fleet, problem.speeds, problem.jobs
    least, most = (np.array([f(x.workers) for x in jobs], dtype=float) for f in (min, max))
    per_node = first_positive(float(fleet.gpus.max(initial=0)))
    total = first_positive(float(fleet.gpus.sum()))
    gradient, compute = speeds.gradient[model], np.where(np.isfinite(fastest), fastest, 0.0)
    value = np.array([0.0 if x.value is None else x.value for x in jobs], dtype=float)
    weight = np.array([x.weight for x in jobs], dtype=float)
    link = fleet.link[np.isfinite(fleet.link)]
    most_gpu = [first_positive(float(x.max(initial=0.0))) for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.nic)]
    columns: dict[str, Any] = {
        "nodes": log_over(least * demand[:, 0], per_node),
        "more": log_over(most, least) - np.log(2),
        "cluster": over(least * demand[:, 0], total),
        "gpu": over(demand[:, 0], most_gpu[0]),
        "cpu": over(demand[:, 1], most_gpu[1]),
        "memory": over(demand[:, 2], most_gpu[2]),
        "nic": over(demand[:, 3], most_gpu[3]),
        "moving": log_over(gradient / fleet.topology.levels[0].bandwidth, compute),
        "moving_inside": log_over(gradient / first_positive(mean(link), 1.0), compute),
        "overlap": speeds.overlap[model],
        "duty": speeds.duty[model],
        "weight": log_over(weight, mean(weight)),
        "optional": [x.value is not None for x in jobs],
        "value": log_over(value, mean(value)),
        "whole_nodes": [x.whole_nodes for x in jobs],
        "per_node": [0.0 if x.most_per_node is None else 1 / x.most_per_node for x in jobs],
        "requires": [bool(x.requires) for x in jobs],
        "servers": log_over([x.servers for x in jobs], least),
        "runs": np.isfinite(fastest),
    }
    columns |= {name: [float(x.collective == name) for x in jobs] for name in COLLECTIVES}
    return {"least": least, "columns": columns}
