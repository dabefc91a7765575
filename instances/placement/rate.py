"""How fast every gang runs under a placement, the one cost model, and what its GPUs pay for being apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray, distinct, offsets, ranges, sums
from .fleet import Fleet
from .job import COLLECTIVES, GangJob
from .problem import PlacementPlan, PlacementProblem


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """What every job of a batch comes to, float64 (J,) each; infinite for a job that is left out.

    Attributes:
        compute: seconds of compute of its slowest worker in a step, interference included.
        sync: seconds of synchronisation in a step, contention included.
        step: seconds of a step.
        slowdown: its best rate, alone on an empty fleet, over its rate here; a rate is worker steps a second.
    """

    compute: FloatArray
    sync: FloatArray
    step: FloatArray
    slowdown: FloatArray


def rates(problem: PlacementProblem, plan: PlacementPlan) -> Rates:
    """Return how fast the jobs run under `plan`, which must fit the batch and the fleet."""
    count = len(problem.jobs)
    workers = sums(plan.job, plan.workers, count)
    compute = _compute(problem, plan)
    sync = _sync(problem, plan, workers)
    overlap = problem.speeds.overlap[model_of(problem)]
    step = np.maximum(compute, (1 - overlap) * compute + sync)
    step[workers == 0] = np.inf
    with np.errstate(invalid="ignore"):  # a job that can run nowhere has a best rate of 0
        slowdown = np.where(workers > 0, best_rate(problem) * step / np.maximum(workers, 1), np.inf)
    return Rates(compute, sync, step, slowdown)


def model_of(problem: PlacementProblem) -> IntArray:
    """Return the index of each job's model among the speeds', int32 (J,)."""
    index = {name: k for k, name in enumerate(problem.speeds.models)}
    return np.array([index[job.model] for job in problem.jobs], dtype=np.int32)


def _compute(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return max over a job's nodes of c (1 + what the jobs beside it add), seconds, float64 (J,)."""
    model, speeds, busy = model_of(problem)[plan.job], problem.speeds, plan.workers > 0
    present = np.zeros((problem.fleet.n_nodes, len(speeds.models)))
    np.add.at(present, (plan.node[busy], model[busy]), 1)
    beside = present[plan.node]
    beside[np.arange(len(model)), model] -= 1
    slower = 1 + (speeds.host[model] * beside).sum(axis=1)
    more = speeds.gpu - speeds.host  # what it adds to share a GPU besides
    (card, row), _, _ = distinct(distinct(plan.node[plan.grant_row], plan.grant_gpu)[1], plan.grant_row)
    card, row = (x[np.bincount(card)[card] > 1] for x in (card, row))
    once = np.bincount(row, minlength=len(model))[row] == 1  # such rows meet others on one GPU, and are counted there
    held = np.zeros((2, card.max(initial=0) + 1, len(speeds.models)))
    np.add.at(held, (once.astype(int), card, model[row]), 1)
    met = held[1, card] + held[0, card] * once[:, None]
    met[np.arange(len(row)), model[row]] -= once
    np.add.at(slower, row, (more[model[row]] * met).sum(axis=1))
    a, b = _beside(card[~once])
    pairs, _, _ = distinct(row[~once][a], row[~once][b])  # the others may meet on several
    np.add.at(slower, pairs[0], more[model[pairs[0]], model[pairs[1]]])
    seconds = np.zeros(len(problem.jobs))
    np.maximum.at(seconds, plan.job[busy], (problem.compute_at(plan.job, plan.node) * slower)[busy])
    return seconds


def _beside(place: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (one, other) of all ordered pairs of entries at the same place."""
    rows = np.argsort(place, kind="stable")
    size = np.unique(place[rows], return_counts=True)[1]
    rows = rows[np.repeat(size > 1, size)]
    size = size[size > 1]
    each = np.repeat(size, size)  # of a row, how many are there
    one, begin = np.repeat(rows, each), np.repeat(offsets(size)[:-1], size)
    other = rows[ranges(begin, begin + each)]
    return one[one != other], other[one != other]


def _sync(problem: PlacementProblem, plan: PlacementPlan, workers: FloatArray) -> FloatArray:
    """Return the seconds of synchronisation of each job in a step, float64 (J,)."""
    fleet, topology, count = problem.fleet, problem.fleet.topology, len(problem.jobs)
    levels = range(len(topology.levels))
    members = [plan.node, *(topology.group[level][plan.node] for level in levels)]
    spans = [_distinct(plan.job, member, count) for member in members]
    share = _shares(problem, members[:-1], spans, plan)
    size, link = problem.speeds.gradient[model_of(problem)], fleet.link[plan.node]
    kind = np.array([COLLECTIVES.index(job.collective) for job in problem.jobs])
    local = _least(plan.job, np.where(plan.workers > 1, link, np.inf), count)
    rate = [np.where(spans[x] > 1, _least(plan.job, share[x], count), np.inf) for x in levels]
    ring, tree = 2 * (workers - 1) / np.maximum(workers, 1) * size, 2 * size * (workers > 1)
    moved = np.where(kind == COLLECTIVES.index("tree"), tree, ring) / np.minimum.reduce([local, *rate])
    # level by level: the most workers of a node, then the most members of a group, one after the other
    most = np.zeros(count)
    np.maximum.at(most, plan.job, plan.workers)
    stepwise = _ring(most, size) / local
    speed = np.full(count, np.inf)
    for x in levels:
        speed = np.minimum(speed, rate[x])
        stepwise += np.where(spans[x] > 1, _ring(_most(plan.job, members[x + 1], members[x], count), size) / speed, 0.0)
    moved = np.where(kind == COLLECTIVES.index("hierarchical"), stepwise, moved)
    served = kind == COLLECTIVES.index("ps")
    if served.any():
        servers = np.array([max(job.servers, 1) for job in problem.jobs], dtype=float)[plan.job]
        traffic = size[plan.job] * plan.workers * plan.servers / servers / link
        for x in levels:
            through = _through(members[x], plan, workers, servers, size) / share[x]
            traffic = np.where(spans[x][plan.job] > 1, np.maximum(traffic, through), traffic)
        through_servers = np.zeros(count)
        np.maximum.at(through_servers, plan.job, traffic)
        moved = np.where(served, through_servers, moved)
    return np.asarray(np.where(workers > 0, moved, 0.0))


def _least(job: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return the least of the values in the rows of each job, infinite where it has none, (count,)."""
    least = np.full(count, np.inf)
    np.minimum.at(least, job, values)
    return least


def _ring(members: FloatArray, size: FloatArray) -> FloatArray:
    """Return `ring_bytes` of each job, 0 of one member."""
    return np.where(members > 1, 2 * (members - 1) / np.maximum(members, 1) * size, 0.0)


def ring_bytes(n: int, size: float) -> float:
    """Return the bytes that each of n members of a ring sends to all-reduce `size` bytes: 2 (n - 1) / n of them."""
    return 2 * (n - 1) / n * size


def _shares(
    problem: PlacementProblem, members: list[IntArray], spans: list[FloatArray], plan: PlacementPlan
) -> list[FloatArray]:
    """Return per level the bytes/s that each row's job gets on its member's link.

    It has the link for itself for the time that the others do not load it: its bandwidth over 1 and their duties.
    """
    result: list[FloatArray] = []
    duty = problem.speeds.duty[model_of(problem)]
    for level, member in zip(problem.fleet.topology.levels, members, strict=True):
        crosses = spans[len(result)][plan.job] > 1
        (used, by), _, _ = distinct(member[crosses], plan.job[crosses])
        load = np.bincount(used, weights=duty[by], minlength=int(member.max(initial=0)) + 1)
        others = np.where(crosses, load[member] - duty[plan.job], 0.0)
        result.append(level.bandwidth / (1 + np.maximum(others, 0.0)))
    return result


def _distinct(job: IntArray, member: IntArray, count: int) -> FloatArray:
    return np.bincount(distinct(job, member)[0][0], minlength=count).astype(float)


def _most(job: IntArray, group: IntArray, member: IntArray, count: int) -> FloatArray:
    """Return the most members that each job has in one group, (count,)."""
    (jobs, groups, _), _, _ = distinct(job, group, member)
    (jobs, _), _, times = distinct(jobs, groups)
    most = np.zeros(count)
    np.maximum.at(most, jobs, times)
    return most


def _through(
    member: IntArray, plan: PlacementPlan, workers: FloatArray, servers: FloatArray, size: FloatArray
) -> FloatArray:
    """Return the bytes that cross each row's member in one direction: gradients out and parameters in, or the reverse.

    A worker sends each of the P servers 1/P of its gradient, and gets as much back.
    """
    _, index, _ = distinct(plan.job, member)
    w, p = (np.bincount(index, weights=tasks)[index] for tasks in (plan.workers, plan.servers))
    return np.asarray(size[plan.job] * (w * (servers - p) + p * (workers[plan.job] - w)) / servers)


Traffic = list[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]]


def traffic(problem: PlacementProblem, plan: PlacementPlan) -> Traffic:
    """Return per level, the nodes' first, what jobs send over its links in a step: link, job, and bytes one way.

    A link has the number of its node, or of the group below it. The model does not say which member of a group leads a
    hierarchical all-reduce: each sends what it would have to as the leader, through its links of all levels.
    """
    topology, count = problem.fleet.topology, len(problem.jobs)
    workers, size = sums(plan.job, plan.workers, count), problem.speeds.gradient[model_of(problem)]
    servers = np.array([max(job.servers, 1) for job in problem.jobs], dtype=float)[plan.job]
    members = [plan.node, *(group[plan.node] for group in topology.group)]
    kind, passed = [COLLECTIVES.index(job.collective) for job in problem.jobs], np.zeros(count)
    found: Traffic = []
    for member, group in reversed([*pairwise(members)]):
        crosses = _distinct(plan.job, member, count) > 1
        passed += crosses * _ring(_most(plan.job, group, member, count), size)
        each = {"ring": _ring(workers, size), "tree": 2 * size, "hierarchical": passed}
        bytes_ = {name: x[plan.job] for name, x in each.items()} | {
            "ps": _through(member, plan, workers, servers, size)
        }
        sent = np.choose(np.array(kind)[plan.job], [bytes_[name] for name in COLLECTIVES])
        rows = np.flatnonzero(crosses[plan.job])
        (link, job), index, _ = distinct(member[rows], plan.job[rows])
        once = np.zeros(len(link))
        once[index] = sent[rows]
        found.insert(0, (link, job, once))
    return found


def best_rate(problem: PlacementProblem) -> FloatArray:
    """Return the worker steps a second of each job alone, packed on as few of the best nodes as hold it, (J,)."""
    fastest, fleet = problem.fastest(), problem.fleet
    gpus, link = int(fleet.gpus.max(initial=0)), float(fleet.link.max())
    known: dict[object, float] = {}  # thousands of jobs are of few kinds
    found = []
    for job, compute in zip(problem.jobs, fastest.tolist(), strict=True):
        kind = job.model, job.worker.gpu, job.most_per_node, job.workers, job.collective
        if kind not in known:
            known[kind] = max(
                degree / _alone(problem, job, degree, compute, gpus=gpus, link=link) for degree in job.workers
            )
        found.append(known[kind])
    return np.array(found)


def _alone(problem: PlacementProblem, job: GangJob, degree: int, compute: float, *, gpus: int, link: float) -> float:
    """Return the seconds of a step of a job alone, its workers spread evenly over as few nodes as hold them."""
    k = problem.speeds.models.index(job.model)
    size, overlap = float(problem.speeds.gradient[k]), float(problem.speeds.overlap[k])
    room = int(gpus / job.worker.gpu) if job.worker.gpu else degree
    room = max(1, min(room, job.most_per_node or room))
    nodes = -(-degree // room)
    here = -(-degree // nodes)
    nic = problem.fleet.topology.levels[0].bandwidth
    if job.collective == "ps":
        apart = 2 * degree / nodes * (1 - 1 / nodes) * size / nic
        sync = max(apart, size * degree / nodes / nodes / link)
    elif job.collective == "hierarchical":
        sync = ring_bytes(here, size) / link + ring_bytes(nodes, size) / nic
    else:
        moved = ring_bytes(degree, size) if job.collective == "ring" else 2 * size * (degree > 1)
        sync = moved / min(link if here > 1 else np.inf, nic if nodes > 1 else np.inf)
    return max(compute, (1 - overlap) * compute + sync)


GIGABYTE = 1e9
"""Bytes whose transfer a pair of GPUs is charged for."""


def communication(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return the communication cost of each job, float64 (J,): over its pairs of GPUs, the seconds of a gigabyte.

    Two GPUs pay 1e9 / B with B, in bytes/s, that of the slowest link between them: the links inside their node, or else
    the NICs and, up to the level at which they meet, the uplinks of their racks and so on. On the cluster of TopDRL
    (Ayadi et al., JPDC 204, 2025), with NVLink of 40 GB/s, InfiniBand of 4 and 2 between racks, these are its weights
    1/40, 1/4 and 1/2. A share of a GPU counts as a GPU of its node; parameter servers, and workers without a GPU, count
    nothing.
    """
    each = np.array([job.worker.grants for job in problem.jobs])[plan.job]
    return pair_costs(problem.fleet, plan.job, plan.node, each * plan.workers, len(problem.jobs))


def pair_costs(fleet: Fleet, job: NDArray[Any], node: NDArray[Any], held: NDArray[Any], count: int) -> FloatArray:
    """Return the communication cost of so many jobs, by rows: the GPUs that a job holds on a node, one row each."""
    inside, across = pair_seconds(fleet)
    cost = sums(job, inside[node] * pairs(held), count)
    below = sums(job, pairs(held), count)
    for seconds, group in zip(across, fleet.topology.group, strict=True):
        (jobs, _), index, _ = distinct(job, group[node])
        within = sums(jobs, pairs(sums(index, held, len(jobs))), count)
        cost += seconds * (within - below)
        below = within
    return cost


def pair_seconds(fleet: Fleet) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of a gigabyte between GPUs of each node, (m,), and of nodes that meet at each level, (L,)."""
    slowest = np.minimum.accumulate([level.bandwidth for level in fleet.topology.levels])
    return GIGABYTE / fleet.link, GIGABYTE / slowest


def pairs(count: NDArray[Any]) -> FloatArray:
    """Return how many pairs so many make, elementwise."""
    return np.asarray(count * (count - 1) / 2, dtype=np.float64)
