"""How fast every gang runs under a placement, the one cost model, and what its GPUs pay for being apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray, sums
from .fleet import Fleet
from .job import GangJob
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
    alone = problem.compute_at(plan.job, plan.node)
    slower = np.ones(len(plan.job))
    host, gpu = problem.speeds.host, problem.speeds.gpu
    model = model_of(problem)[plan.job].tolist()
    held: list[set[int]] = [set() for _ in model]
    for row, card in zip(plan.grant_row.tolist(), plan.grant_gpu.tolist(), strict=True):
        held[row].add(card)
    for rows in _rows_by_node(plan):
        for a in rows:
            for b in rows:
                if a != b:
                    slower[a] += (gpu if held[a] & held[b] else host)[model[a], model[b]]
    seconds = np.zeros(len(problem.jobs))
    busy = plan.workers > 0
    np.maximum.at(seconds, plan.job[busy], (alone * slower)[busy])
    return seconds


def _rows_by_node(plan: PlacementPlan) -> list[list[int]]:
    """Return the rows with workers of every node that has several."""
    rows = np.flatnonzero(plan.workers > 0)
    rows = rows[np.argsort(plan.node[rows], kind="stable")]
    cuts = np.flatnonzero(np.diff(plan.node[rows])) + 1
    return [part.tolist() for part in np.split(rows, cuts) if len(part) > 1]


def _rows_by_job(plan: PlacementPlan) -> list[IntArray]:
    """Return the rows of every job that has any."""
    order = np.argsort(plan.job, kind="stable").astype(np.int32)
    return np.split(order, np.flatnonzero(np.diff(plan.job[order])) + 1) if len(order) else []


def _sync(problem: PlacementProblem, plan: PlacementPlan, workers: FloatArray) -> FloatArray:
    """Return the seconds of synchronisation of each job in a step, float64 (J,)."""
    fleet, topology = problem.fleet, problem.fleet.topology
    count = len(problem.jobs)
    members = [plan.node, *(topology.group[level][plan.node] for level in range(len(topology.levels)))]
    spans = [_distinct(plan.job, member, count) for member in members]
    share = _shares(problem, members[:-1], spans, plan)
    seconds = np.zeros(count)
    lone: list[int] = []
    gradient = problem.speeds.gradient[model_of(problem)]
    for rows in _rows_by_job(plan):
        j = int(plan.job[rows[0]])
        if len(rows) == 1:
            lone.append(int(rows[0]))
            continue
        job, size = problem.jobs[j], float(gradient[j])
        crossed = [level for level in range(len(topology.levels)) if spans[level][j] > 1]
        rate = [float(share[level][rows].min()) for level in crossed]
        link = fleet.link[plan.node[rows]]
        if job.collective == "ps":
            traffic = [_through(members[level][rows], plan, rows, job, size) / share[level][rows] for level in crossed]
            inside = size * plan.workers[rows] * plan.servers[rows] / job.servers / link
            seconds[j] = max([float(inside.max()), *(float(t.max()) for t in traffic)])
            continue
        shared = plan.workers[rows] > 1
        local = float(link[shared].min()) if shared.any() else np.inf
        if job.collective == "hierarchical":
            most = [int(plan.workers[rows].max())] + [_most(members, level, rows) for level in crossed]
            speed = [local, *np.minimum.accumulate(rate).tolist()]
            seconds[j] = sum(ring_bytes(n, size) / b for n, b in zip(most, speed, strict=True) if n > 1)
        else:
            slowest = min([local, *rate])
            moved = ring_bytes(int(workers[j]), size) if job.collective == "ring" else 2 * size * (workers[j] > 1)
            seconds[j] = moved / slowest
    seconds[plan.job[lone]] = _inside(problem, plan, np.array(lone, dtype=int), gradient)
    return seconds


def _inside(problem: PlacementProblem, plan: PlacementPlan, rows: NDArray[Any], gradient: FloatArray) -> FloatArray:
    """Return the seconds of synchronisation of jobs that are on one node each, whose rows these are."""
    jobs = [problem.jobs[j] for j in plan.job[rows].tolist()]
    size, link, w = gradient[plan.job[rows]], problem.fleet.link[plan.node[rows]], plan.workers[rows]
    servers = np.array([job.servers for job in jobs])
    tree, ps = np.array([job.collective == "tree" for job in jobs], dtype=bool), servers > 0
    moved = np.where(tree, 2 * size * (w > 1), 2 * (w - 1) / np.maximum(w, 1) * size)
    return np.asarray(np.where(ps, size * w * plan.servers[rows] / np.maximum(servers, 1), moved) / link)


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
        pairs = np.unique(np.stack([member[crosses], plan.job[crosses]]), axis=1)
        load = np.bincount(pairs[0], weights=duty[pairs[1]], minlength=int(member.max(initial=0)) + 1)
        others = np.where(crosses, load[member] - duty[plan.job], 0.0)
        result.append(level.bandwidth / (1 + np.maximum(others, 0.0)))
    return result


def _distinct(job: IntArray, member: IntArray, count: int) -> FloatArray:
    """Return over how many members each job spreads, (count,)."""
    pairs = np.unique(np.stack([job, member]), axis=1)
    return np.bincount(pairs[0], minlength=count).astype(float)


def _most(members: list[IntArray], level: int, rows: IntArray) -> int:
    """Return the most members of `level` that the rows have in one group of it."""
    pairs = np.unique(np.stack([members[level + 1][rows], members[level][rows]]), axis=1)
    return int(np.unique(pairs[0], return_counts=True)[1].max())


def _through(member: IntArray, plan: PlacementPlan, rows: IntArray, job: GangJob, size: float) -> FloatArray:
    """Return the bytes that cross each row's member in one direction: gradients out and parameters in, or the reverse.

    A worker sends each of the P servers 1/P of its gradient, and gets as much back.
    """
    _, inverse = np.unique(member, return_inverse=True)
    w = np.bincount(inverse, weights=plan.workers[rows])[inverse]
    p = np.bincount(inverse, weights=plan.servers[rows])[inverse]
    return np.asarray(size * (w * (job.servers - p) + p * (plan.workers[rows].sum() - w)) / job.servers)


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
    """Return the seconds of a step of a job alone, its workers spread evenly over as few nodes as hold them.

    Args:
        problem: the problem.
        job: one of its jobs.
        degree: how many workers.
        compute: seconds of a worker on the GPUs that suit it best.
        gpus: of the largest node.
        link: the fastest inside a node, bytes/s.
    """
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
    count, groups = len(problem.jobs), problem.fleet.topology.group
    each = np.array([job.worker.grants for job in problem.jobs])[plan.job]
    held = each * plan.workers
    inside, across = pair_seconds(problem.fleet)
    cost = sums(plan.job, inside[plan.node] * pairs(held), count)
    below = sums(plan.job, pairs(held), count)
    for seconds, group in zip(across, groups, strict=True):
        keys, index = np.unique(np.stack([plan.job, group[plan.node]]), axis=1, return_inverse=True)
        within = sums(keys[0], pairs(sums(index.ravel(), held, keys.shape[1])), count)
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
