"""A placement problem as its methods see it, and which methods are for batches of its size."""

from __future__ import annotations

from functools import cached_property
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.placement import Fleet, PlacementProblem
from gangplan.instances.placement.rate import best_rate, model_of
from gangplan.instances.verify import TOLERANCE

Indices = NDArray[np.integer[Any]]
"""Whole numbers of any width: numpy's own searches return the wide ones."""
_MODERATE = 4.0
"""Costs of a job up to which, and down to its inverse, models take them as they are."""
Rows = dict[int, tuple[int, int]]
"""Where a job is: node -> (workers, servers)."""


class GroupTree:
    """The network as a tree of groups: nodes, racks, and what is above.

    Attributes:
        group: int32 (L + 1, m), the group of each node at each level, the node itself first.
        inside: the nodes of each rack, ascending.
        children: of each level above, the groups one level below of each of its groups.
    """

    def __init__(self, fleet: Fleet) -> None:
        nodes = np.arange(fleet.n_nodes, dtype=np.int32)
        self.group: IntArray = np.concatenate([nodes[None], fleet.topology.group])
        self.inside = _parts(self.group[1], nodes)
        self.children: list[list[Indices]] = []
        for low, high in zip(self.group[1:], self.group[2:], strict=False):
            groups, first = np.unique(low, return_index=True)
            self.children.append(_parts(high[first], groups))


def _parts(group: IntArray, members: Indices) -> list[Indices]:
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(1, int(group.max(initial=-1)) + 1))
    return [np.asarray(part, dtype=np.int64) for part in np.split(members[order], cuts)]


class PreparedBatch:
    """What all methods of a solve share; J jobs, m nodes, q kinds of nodes, L levels.

    Attributes:
        kind: int (m,), nodes of a kind are equal but for where they are in the network.
        sample: int (q,), a node of each kind.
        allowed: bool (J, q), whether tasks may be there: usable, labels.
        alone: seconds of compute of a worker, float64 (J, q), inf where it may not be.
        room: int (J, q), the most workers an empty node holds.
        members: L + 1 lists of m group numbers: the node itself, its rack, ..., the one group of all.
        bandwidth: bytes/s of a member's link, L figures.
        model, weight, best, gradient, overlap, duty: of each job; `best` is its rate alone. even: whether all duties
            are 1, so that links are shared by the number of gangs.
        each, share: GPUs that a worker holds or has a share of, int (J,), and the share of each, float64 (J,).
        amounts: cores, bytes, and bytes/s of the NIC that tasks may set aside, of each node, float64 (3, m).
        worker, server: what a worker, and a parameter server, of each job takes of these, float64 (3, J).
        apart: the jobs that each job may share no node with, both ways.
        pinned: the rows of jobs that run and stay.
        standing: the rows of jobs that run and may move, and what moving costs.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        fleet, jobs = problem.fleet, problem.jobs
        self.jobs, self.n_nodes = jobs, fleet.n_nodes
        self.kind, self.sample = _kinds(problem)
        # thousands of jobs ask for few sets of labels
        asked = list(dict.fromkeys((job.requires, job.tolerates) for job in jobs))
        meets = [fleet.admits(*wishes)[self.sample] for wishes in asked]
        row = {wishes: i for i, wishes in enumerate(asked)}
        self.allowed = (
            np.array(meets, dtype=bool).reshape(-1, len(self.sample))[
                [row[job.requires, job.tolerates] for job in jobs]
            ]
            & np.asarray(fleet.usable)[self.sample]
        )
        alone = problem.compute_at(np.arange(len(jobs))[:, None], self.sample)
        self.alone = np.where(self.allowed, alone, np.inf)
        self.each = np.array([job.worker.grants for job in jobs])
        self.share = np.array([min(1.0, job.worker.gpu) for job in jobs])
        self.amounts = np.stack([fleet.cpu, fleet.memory, fleet.nic])
        self.worker, self.server = (
            np.array([[getattr(task, field) for task in tasks] for field in ("cpu", "memory", "nic")], dtype=float)
            for tasks in ([job.worker for job in jobs], [job.server for job in jobs])
        )
        self.room = self._room()
        topology = fleet.topology
        self.members: list[list[int]] = [list(range(fleet.n_nodes)), *(row.tolist() for row in topology.group)]
        self.group = np.concatenate([np.arange(fleet.n_nodes, dtype=np.int32)[None], topology.group])
        self.bandwidth = [level.bandwidth for level in topology.levels]
        self.link = fleet.link.tolist()
        self.model = model_of(problem)
        self.weight = np.array([job.weight for job in jobs], dtype=float)
        self.best = best_rate(problem)
        self.gradient = problem.speeds.gradient[self.model]
        self.overlap = problem.speeds.overlap[self.model]
        self.duty = problem.speeds.duty[self.model]
        self.even = bool((self.duty == 1).all())
        index = {job.name: j for j, job in enumerate(jobs)}
        self.apart: list[set[int]] = [set() for _ in jobs]
        for j, job in enumerate(jobs):
            for name in job.apart:
                self.apart[j].add(index[name])
                self.apart[index[name]].add(j)
        node = {name: i for i, name in enumerate(fleet.names)}
        self.pinned: dict[int, Rows] = {}
        self.standing: dict[int, tuple[Rows, float]] = {}
        for run in problem.running:
            rows = {node[n]: (w, p) for n, w, p in zip(run.nodes, run.workers, run.servers, strict=True) if w or p}
            if run.movable:
                self.standing[index[run.job]] = rows, run.migration
            else:
                self.pinned[index[run.job]] = rows

    def _room(self) -> IntArray:
        fleet = self.problem.fleet
        room = np.where(np.isfinite(self.alone), 2.0**31 - 1, 0.0)
        for has, need in zip(self.amounts, self.worker, strict=True):
            room = np.minimum(room, fits(has[self.sample], need[:, None]))
        room = np.minimum(
            room, gpu_room(fleet.gpus[self.sample].astype(float), self.each[:, None], self.share[:, None])
        )
        most = np.array([job.most_per_node or 2**31 - 1 for job in self.jobs])
        return np.asarray(
            np.minimum(np.minimum(room, most[:, None]), [[job.workers[-1]] for job in self.jobs]), np.int32
        )

    @cached_property
    def tree(self) -> GroupTree:
        """The network."""
        return GroupTree(self.problem.fleet)

    @cached_property
    def unit(self) -> float:
        """What models of whole numbers multiply costs by: a power of two, the highest cost becoming about 1."""
        prices = (job.value or 0.0 for job in self.jobs)
        highest = max([float(self.weight.max()), *prices, *(price for _, price in self.standing.values())])
        if not highest or 1 / _MODERATE <= highest <= _MODERATE:
            return 1.0
        return 2.0 ** -round(log2(highest))

    @cached_property
    def host(self) -> FloatArray:
        """What a job adds at least to the compute of another on its node, (K, K): on the same GPU it may be less."""
        speeds, takes = self.problem.speeds, np.zeros(len(self.problem.speeds.models), dtype=bool)
        takes[self.model[(self.share < 1) & (self.each > 0)]] = True
        return np.where(takes[:, None] & takes, np.minimum(speeds.host, speeds.gpu), speeds.host)

    @cached_property
    def place(self) -> IntArray:
        """The class of each node, int (m,): one kind, one rack, no running job, so they can be swapped at no change."""
        held = np.full(self.n_nodes, -1)
        for rows in (*self.pinned.values(), *(rows for rows, _ in self.standing.values())):
            held[list(rows)] = list(rows)
        keys = np.stack([self.kind, self.group[1], held])
        return np.asarray(np.unique(keys, axis=1, return_inverse=True)[1].ravel(), np.int32)

    @cached_property
    def usable(self) -> BoolArray:
        """The nodes that any worker may use, bool (m,)."""
        return np.asarray((self.room > 0).any(axis=0))[self.kind]


def fits(has: FloatArray, need: FloatArray, of: FloatArray | None = None) -> FloatArray:
    """Return how often `need` goes into `has`, elementwise; very often if it is 0.

    The verifier's tolerance is a share of what there is in all: of which `has` is left, if it is not all itself.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.floor((has + TOLERANCE * (has if of is None else of)) / need)
    return np.asarray(np.where(need > 0, np.maximum(count, 0.0), 2.0**31 - 1))


def gpu_room(gpus: FloatArray, each: IntArray, share: FloatArray) -> FloatArray:
    """Return how many workers of `each` GPUs, or of a share of one, go on `gpus` idle GPUs, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.floor(gpus / each)
        part = gpus * np.floor((1 + TOLERANCE) / share)
    return np.asarray(np.where(each == 0, 2.0**31 - 1, np.where(share < 1, part, whole)))


def _kinds(problem: PlacementProblem) -> tuple[IntArray, IntArray]:
    fleet = problem.fleet
    names = (*fleet.labelled, *fleet.tainted)
    keys = np.stack([fleet.gpu_type, fleet.gpus, fleet.cpu, fleet.memory, fleet.link, np.asarray(fleet.usable), *names])
    _, sample, kind = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return np.asarray(kind.ravel(), np.int32), np.asarray(sample, np.int32)


_LARGE = 20_000
"""Nodes beyond which nothing is ruined and recreated."""
INSERTED = 2048
"""Nodes beyond which insertion is no first plan: it takes too long."""
_CPSAT = 200_000
"""Pairs of jobs, times nodes."""
_WORKERS = 500
"""Of all jobs, as far as one node holds them: with more, no search for columns ends within a minute."""


def suits_cpsat(batch: PreparedBatch) -> bool:
    """Return whether a model with every pair of jobs on every node is of a size worth building."""
    return len(batch.jobs) ** 2 * batch.n_nodes <= _CPSAT


def suits_local_search(batch: PreparedBatch) -> bool:
    """Return whether the cluster is small enough to look at all of it for each gang."""
    return batch.n_nodes <= _LARGE


def suits_bounds(batch: PreparedBatch) -> bool:
    """Return whether patterns of nodes say more than what each job costs at least: for slowdown."""
    return batch.problem.goal == "slowdown"


def suits_patterns(batch: PreparedBatch) -> bool:
    """Return whether patterns say all there is: slowdown, rigid gangs of whole GPUs, none running, NICs plain."""
    return (
        batch.problem.goal == "slowdown"
        and not batch.pinned
        and not batch.standing
        and not (batch.worker[2].any() or batch.server[2].any())
        and batch.even
        and all(len(job.workers) == 1 for job in batch.jobs)
        and bool((batch.share[batch.each > 0] == 1).all())
        and int(batch.room.max(axis=1).sum()) <= _WORKERS
    )
