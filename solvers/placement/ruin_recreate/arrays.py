"""A batch and a placement of it as flat arrays for compiled code; their types are in arrays.pxd."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import cclass, final
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.job import COLLECTIVES
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.placement.rate import pair_seconds
from gangplan.instances.verify import TOLERANCE

from ...native import Random, Sorting
from ..best_case import BestCase

if not cython.compiled:
    from ...native import Int

    RING, TREE, HIERARCHICAL, SERVERS = range(4)
    """Collectives, in the order of `gangplan.instances.placement.job.COLLECTIVES`."""
    SLOWDOWN, THROUGHPUT, COMMUNICATION, FRAGMENTATION = range(4)
    """Goals, in the order of `gangplan.instances.placement.problem.GOALS`."""
    RUIN = 3
    """Gangs that go with the one that is drawn, at most."""
    RACKS = 6
    """Parts of the network that are looked into for one gang."""

SLOTS = 3 + RUIN + 1
"""Rows beside those of jobs: on trial, of the best place, of the one whose parts are moved, and of jobs that went."""
ROWS = 512
"""Rows of one gang, at most."""


@final
@cclass
class BatchArrays:
    """What a batch is: J jobs, m nodes, q kinds of them, K models, M groups of all levels, D degrees, R rows at most.

    A group is a node, a rack, or what is above; T kinds of task are expected, where fragments are the goal.

    Attributes:
        jobs, nodes, most, goal: J, m, R, and one of `gangplan.instances.placement.problem.GOALS` by its place.
        sharing, guarding: whether workers of some job share GPUs, and some jobs may not share nodes.
        tolerance: of what a node has, as the verifier's.
        above: of each group that which it is in, one level up, (M,).
        level, bandwidth: of each group, and bytes/s of its link, (M,).
        inside: seconds of a gigabyte between two GPUs of a node, (m,).
        across: seconds of a gigabyte between GPUs that meet at a level, (L,).
        kind, link, gpus: of each node; bytes/s inside it, (m,).
        amounts: cores, bytes and NIC of each node, (m, 3).
        usable: kinds of node that are, (q,).
        host, gpu: what a model adds to another's compute on a node, and on a GPU that they share, (K, K).
        model, weight, servers: of each job, (J,); servers are parameter servers.
        floor: what each job costs at least, placed or left out, if it need not move, (J,).
        best: rate of each job alone on an empty fleet, (J,).
        gradient, overlap: bytes, and the share of the compute that hides synchronisation, (J,).
        duty: share of the time that a job is on its links, (J,).
        collective: one of `gangplan.instances.placement.job.COLLECTIVES` by its place, (J,).
        value, migration: what leaving a job out costs, infinite if it must be placed, and what moving it does, (J,).
        alone_on_nodes, free: jobs that want their nodes for themselves, and those that may be moved, (J,).
        together: workers of each job that fit on one GPU; 0 for those that share none, (J,).
        share: of a GPU that a worker takes, (J,).
        need: GPUs, cores, bytes and NIC of a worker; cores, bytes and NIC of a server, (J, 7).
        alone: seconds of compute, infinite where the job may not be, (J, q).
        room: workers on an empty node, (J, q).
        degrees: numbers of workers, the largest first, then 0, (J, D).
        apart: pairs of jobs that may share no node, (J, J).
        standing, standing_rows: rows where each job runs, (J, R, 3), and how many, (J,).
        expected: GPUs, share of each, cores, bytes and NIC of each kind of task, (T, 5).
        chance: how often each kind of task comes, (T,).
        accepts: whether a kind of task may use a kind of node at all, (T, q).
    """

    def __init__(self, batch: Any) -> None:
        """Copy the arrays of a `PreparedBatch`."""
        problem, jobs, fleet, count = batch.problem, batch.jobs, batch.problem.fleet, len(batch.jobs)
        goal = GOALS.index(problem.goal)
        self.jobs, self.nodes, self.goal, self.tolerance = count, batch.n_nodes, goal, TOLERANCE
        self.above, self.level, self.bandwidth = _network(batch)
        self.inside, self.across = (np.array(x, np.float64) for x in pair_seconds(fleet))
        self.kind, self.link, self.gpus = batch.kind.astype(np.int64), _matrix(batch.link), fleet.gpus.astype(np.int64)
        self.amounts = batch.amounts.T.copy()
        self.host, self.gpu = _matrix(problem.speeds.host), _matrix(problem.speeds.gpu)
        self.model, self.weight, self.floor = batch.model.astype(np.int64), _matrix(batch.weight), _floor(batch, goal)
        self.best, self.gradient, self.overlap = _matrix(batch.best), _matrix(batch.gradient), _matrix(batch.overlap)
        self.duty, self.alone, self.room = _matrix(batch.duty), _matrix(batch.alone), batch.room.astype(np.int64)
        self.collective = np.array([COLLECTIVES.index(job.collective) for job in jobs], np.int64)
        self.servers = np.array([job.servers for job in jobs], np.int64)
        self.value = np.array([np.inf if job.value is None else job.value for job in jobs], np.float64)
        self.alone_on_nodes = np.array([job.whole_nodes for job in jobs], np.uint8)

        shared = (batch.share < 1) & (batch.each > 0)
        together = np.minimum((1 + TOLERANCE) / np.where(shared, batch.share, 1.0), 2.0**31)
        self.sharing, self.together = shared.any(), np.where(shared, together, 0).astype(np.int64)
        self.share = np.where(shared, batch.share, 0.0)
        self.need = _matrix(np.stack([np.where(shared, 0, batch.each), *batch.worker, *batch.server], axis=1))

        widest = max((job.workers[-1] + job.servers for job in jobs), default=1)
        stand = [rows for rows, _ in batch.standing.values()]
        self.most = max(1, min(batch.n_nodes, widest, ROWS), *map(len, [*stand, *batch.pinned.values()]))
        standing, standing_rows = np.zeros((count, self.most, 3), np.int64), np.zeros(count, np.int64)
        migration, free = np.zeros(count), np.ones(count, np.uint8)
        for job, (rows, price) in batch.standing.items():
            migration[job], standing_rows[job] = price, len(rows)
            standing[job, : len(rows)] = [(node, *tasks) for node, tasks in rows.items()]
        free[list(batch.pinned)] = False
        self.standing, self.standing_rows, self.migration, self.free = standing, standing_rows, migration, free

        self.guarding = any(batch.apart)
        apart = np.zeros((count if self.guarding else 0, count), np.uint8)
        for job in range(len(apart)):
            apart[job, list(batch.apart[job])] = True
        degrees = np.zeros((count, max(len(job.workers) for job in jobs)), np.int64)
        for row, each in zip(degrees, jobs, strict=True):
            row[: len(each.workers)] = each.workers[::-1]
        self.apart, self.degrees = apart, degrees

        tasks = [x for x in problem.expected() if x.task.demand.grants] if goal == FRAGMENTATION else []
        demands = [x.task.demand for x in tasks]
        expected = [(d.grants, min(1.0, d.gpu), d.cpu, d.memory, d.nic) for d in demands]
        type_of = [fleet.gpu_types[fleet.gpu_type[n]] if fleet.gpus[n] else "" for n in batch.sample]
        accepts = [[not x.task.gpu_types or kind in x.task.gpu_types for kind in type_of] for x in tasks]
        self.usable = np.asarray(fleet.usable)[batch.sample].astype(np.uint8)
        self.chance = np.array([x.share for x in tasks], np.float64)
        self.expected = np.array(expected, np.float64).reshape(len(tasks), 5)
        self.accepts = np.array(accepts, np.uint8).reshape(len(tasks), len(type_of))

    def suppose(self, model: NDArray[np.int64], host: FloatArray, gpu: FloatArray) -> None:
        """Let jobs be of other models from now on, int64 (J,), which slow one another so much, (K, K)."""
        models = len(host)
        if len(model) != self.jobs or host.shape != (models, models) or gpu.shape != host.shape:
            raise ValueError(f"{host.shape} and {gpu.shape} are not for {self.jobs} jobs' models")
        if model.min() < 0 or model.max() >= models:
            raise ValueError(f"{model.max()} is none of {models} models")
        self.model, self.host, self.gpu = model, host, gpu


@final
@cclass
class Placement:
    """Where all jobs are, and what that costs; everything here is written to.

    Attributes:
        rows, count: node, workers and servers of each row of each job, (J + `SLOTS`, R, 3), and how many rows, (J,).
        wide: whether a job is in several racks, (J,).
        here: jobs on each node, workers of each, and which of its rows that is, (m, A, 3).
        many: jobs on each node, (m,).
        suffer: what those on a node add to each model's compute, (m, K).
        extra: what a job suffers from those on its own GPUs besides, of each of its rows, (J, R).
        left: GPUs, cores, bytes and NIC that are free on each node, (m, 4).
        whole, guarded: GPUs of each node that are taken as a whole, and jobs that want it for themselves, (m,).
        load: duties of the gangs that cross a group's link, (M,).
        compute, sync, cost: seconds and cost of each job, (J,).
        fragment: expected fragments of each node, (m,).
        record: the least cost of all so far.
        dirty: jobs whose cost is to be renewed, (J,).
        other: compute and synchronisation that a candidate would leave to each job, (J, 2).
        changed, spot: jobs that a candidate changes, (J,), and where in that list each is, if it is there, (J,).
        trial: whose rows, as if of a job, are those of a place that is looked at.
        place, size, least: the same of the best place so far, how many rows those are, and what it costs.
        kept, before: the same of the place whose parts are moved, and of the first of the jobs that went.
        window, seen: nodes that are looked at for a gang, and behind them others, (m,), and how many.
        room: workers of a gang that each node in view holds, 0 elsewhere, (m,).
        groups: of one level and the next, scratch, (2, R).
        sums: workers, servers and parts in each of them, scratch, (2, R, 3).
        mark: groups that a candidate crosses, 0 between two candidates, (M,).
        bins: how full GPUs are that are shared, of a node, scratch, (G,); no more than there are tasks.
        tasks, filled: places in `order` of the tasks on each of these GPUs, ascending, scratch, (G, T), and how many,
            (G,).
        order: jobs on a node that share GPUs, the largest shares first, scratch, (A + 1,).
        met: of each of them the last with which it has a GPU in common, scratch, (A + 1,).
        gone, found: jobs that went in the last round, in the order in which they came back, -1 behind them, (4,), of
            which the first is -1 if none went; and what the batch would cost with them back, inf if they were not all
            put back.
        chosen, sizes: the jobs that go, and how many rows each had, (4,); slack: what each job costs more than it must,
            (J,).
        cheap, roomy: places in `window`, the cheapest first, and the roomiest; inside: which of them count, (m,).
        racks: parts of the network that were looked into for one gang.
        random: the random numbers of a search.
    """

    def __init__(self, given: BatchArrays, here: Int) -> None:
        """Make the arrays of a placement without jobs, for up to `here` jobs on a node."""
        jobs, nodes, groups, models = given.jobs, given.nodes, len(given.above), len(given.host)
        gpus, together, ints = np.asarray(given.gpus), np.asarray(given.together), np.int64
        tasks = max(1, int(np.asarray(given.degrees)[together > 0].max(axis=1, initial=0).sum()))
        bins, most = min(int(gpus.max(initial=1)), tasks), given.most
        self.trial, self.place, self.kept, self.before = jobs, jobs + 1, jobs + 2, jobs + 3
        self.size, self.seen, self.record, self.least, self.found = 0, nodes, 0.0, 0.0, 0.0
        self.rows, self.here = np.zeros((jobs + SLOTS, most, 3), ints), np.zeros((nodes, here, 3), ints)
        self.wide, self.dirty = np.zeros((2, jobs), np.uint8)
        self.inside, self.fragment = np.zeros(nodes, np.uint8), np.zeros(nodes)
        self.count, self.changed, self.spot = np.zeros((3, jobs), ints)
        self.many, self.whole, self.guarded, self.room = np.zeros((4, nodes), ints)
        self.window, self.mark, self.racks = np.arange(nodes), np.zeros(groups, ints), np.zeros(RACKS, ints)
        self.gone, self.chosen, self.sizes = np.full((3, RUIN + 1), -1)
        self.filled = np.zeros(bins, ints)
        self.tasks = np.zeros((bins, min(int(together.max(initial=0)) + 1, tasks)), ints)
        self.order, self.met = np.zeros((2, here + 1), ints)
        self.groups, self.sums = np.zeros((2, most + 1), ints), np.zeros((2, most + 1, 3), ints)
        self.load, self.bins, self.suffer = np.zeros(groups), np.zeros(bins), np.zeros((nodes, models))
        self.cost, self.compute, self.sync, self.slack = np.zeros((4, jobs))
        self.extra, self.other = np.zeros((jobs, most)), np.zeros((jobs, 2))
        self.left = np.concatenate([gpus[:, None].astype(np.float64), given.amounts], axis=1)
        self.cheap, self.roomy, self.random = Sorting(nodes), Sorting(nodes), Random(0)

    def fits(self, given: BatchArrays) -> bool:
        """Return whether it is one of a batch of this shape."""
        same = (len(self.count), len(self.many), len(self.mark), len(self.suffer[0]))
        return same == (given.jobs, given.nodes, len(given.above), len(given.host))


def _matrix(values: FloatArray) -> FloatArray:
    return np.array(values, dtype=float, order="C")


def _floor(batch: Any, goal: int) -> FloatArray:
    """Return what each job costs at least if it need not move, as far as that is quickly known."""
    count = len(batch.jobs)
    floor = np.zeros(count)
    if goal == SLOWDOWN:
        most = np.array([job.workers[-1] for job in batch.jobs])
        alone = batch.alone.min(axis=1)
        # who runs nowhere is left out, whatever its weight
        able = np.isfinite(alone)
        floor = np.where(able, batch.weight * batch.best * np.where(able, alone, 0.0) / most, np.inf)
    elif goal == COMMUNICATION:
        best = BestCase(batch)
        floor = np.array([best.floor(job) for job in range(count)])
    return np.minimum(floor, [np.inf if job.value is None else job.value for job in batch.jobs])


def _network(batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    group = batch.group.astype(np.int64)
    sizes = group.max(axis=1) + 1
    offset = np.concatenate([[0], np.cumsum(sizes)])
    above, level, bandwidth = np.zeros(offset[-1], np.int64), np.zeros(offset[-1], np.int64), np.zeros(offset[-1])
    for i, size in enumerate(sizes):
        here = slice(offset[i], offset[i] + size)
        level[here] = i
        bandwidth[here] = batch.bandwidth[i] if i < len(batch.bandwidth) else np.inf
        high = min(i + 1, len(sizes) - 1)
        above[offset[i] + group[i]] = offset[high] + group[high]
    return above, level, bandwidth
