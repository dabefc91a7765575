"""Prove at once what costs little: that there is no plan, each job at its best, GPUs that must be left over."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import Fragmentation

from .best_case import BestCase
from .build import start, stays
from .gpu_assignment import undecided
from .prepare import PreparedBatch
from .state import PlacementState


def impossible(batch: PreparedBatch) -> str | None:
    """Return why there is no placement, in words, or `None` if no reason is easy to see."""
    state = PlacementState(batch)
    for j, rows in batch.pinned.items():
        if not stays(state, j, rows):
            missed = any(undecided(*state.shares(node, j, w)) for node, (w, _) in rows.items())
            return None if missed else f"job {batch.jobs[j].name} runs, may not move and cannot stay"
        state.add(j, rows)
    return _one(batch, state) or _together(batch)


def _one(batch: PreparedBatch, state: PlacementState) -> str | None:
    """Return a job that fits nowhere beside those that are pinned."""
    kinds: set[object] = set()  # thousands of jobs are of few kinds
    for j, job in enumerate(batch.jobs):
        if job.value is not None or state.rows[j]:
            continue
        kind = (
            *(job.model, job.worker, job.workers, job.servers, job.server, job.where),
            *(job.most_per_node, job.whole_nodes, frozenset(batch.apart[j])),
        )
        if kind in kinds:
            continue
        kinds.add(kind)
        need = job.workers[0]
        room = int(state.room(j).sum(dtype=np.int64))
        if room < need:
            return f"job {job.name} needs {need} workers, the nodes that it may use have room for {room}"
        servers = int(state.server_room(j, {}).sum(dtype=np.int64))
        if servers < job.servers:
            nodes = f"the nodes that it may use have room for {servers}"
            return f"job {job.name} needs {job.servers} parameter servers, {nodes}"
    return None


def _together(batch: PreparedBatch) -> str | None:
    """Return a resource that is short for the jobs that are confined to the same nodes."""
    fleet = batch.problem.fleet
    count = np.bincount(batch.kind, minlength=len(batch.sample))
    must = [j for j, job in enumerate(batch.jobs) if job.value is None]
    least = np.array([job.workers[0] for job in batch.jobs])
    servers = np.array([job.servers for job in batch.jobs])
    gpus: Any = fleet.gpus, batch.each * batch.share, np.zeros(len(batch.jobs))
    resources = [gpus, *zip(batch.amounts, batch.worker, batch.server, strict=True)]
    names = "GPUs", "cores", "bytes of memory", "bytes/s of NICs"
    # workers go where they can compute, servers wherever the job may be
    reach = [(batch.room[j] > 0) | (batch.allowed[j] if batch.jobs[j].servers else False) for j in must]
    sets: dict[bytes, BoolArray] = {x.tobytes(): x for x in reach}
    for inside in sets.values():
        confined = [j for j, own in zip(must, reach, strict=True) if not (own & ~inside).any()]
        for name, (has, worker, server) in zip(names, resources, strict=True):
            need = float((least * worker + servers * server)[confined].sum())
            total = float((has[batch.sample] * count)[inside].sum())
            if need > total * (1 + TOLERANCE):
                where = "the fleet" if inside.all() else f"the {int(count[inside].sum())} nodes that they may use"
                return f"{len(confined)} jobs need {need:.6g} {name} together, {where} have {total:.6g}"
    return None


_LARGEST = 2_000_000
"""Nodes times GPUs of a fleet whose left-over GPUs are counted one by one."""


def left_over(batch: PreparedBatch) -> float:
    """Return a bound on the expected fragments of all nodes, in GPUs."""
    measure = Fragmentation(batch.problem)
    return max(_stranded(batch, measure), _whole(batch, measure))


def _stranded(batch: PreparedBatch, measure: Fragmentation) -> float:
    """Return what is left, once the jobs fill them, of nodes that a kind of task cannot use even if they are empty."""
    fleet = batch.problem.fleet
    gpus, usable = fleet.gpus[batch.sample], np.asarray(fleet.usable)[batch.sample]
    count = np.bincount(batch.kind, minlength=len(batch.sample)) * usable.astype(float)
    most = np.array([job.workers[-1] for job in batch.jobs])
    total = 0.0
    for task, share in measure.kinds:
        useless = np.array(
            [not measure.fits(n, task, [1.0] * int(fleet.gpus[n]), _all(batch, n)) for n in batch.sample.tolist()]
        )
        workers = np.minimum(most, batch.room[:, useless].astype(np.int64) @ count[useless])
        filled = float(workers @ (batch.each * batch.share))
        total += share * max(0.0, float(gpus[useless] @ count[useless]) - filled)
    return total


def _whole(batch: PreparedBatch, measure: Fragmentation) -> float:
    """Return the least fragments of any numbers of idle GPUs of the nodes that add up to what must be left idle.

    A dynamic programme over the nodes; 0 if the fleet is large. Cores and memory are taken to be all there, and GPUs
    that are shared to leave nothing.
    """
    fleet = batch.problem.fleet
    usable = np.flatnonzero(np.asarray(fleet.usable))
    gpus = int(fleet.gpus[usable].sum())
    must = np.array([job.gang if job.value is None else 0 for job in batch.jobs])
    fewest = ceil(float(must @ (batch.each * batch.share)) - 1e-6)
    most = sum(job.workers[-1] * int(each) for job, each in zip(batch.jobs, batch.each, strict=True))
    if fewest > gpus or len(usable) * gpus > _LARGEST:
        return 0.0
    # expected fragments of a node of each kind with 0, 1, 2, ... of its GPUs free
    free_gpus = ((n, range(int(fleet.gpus[n]) + 1)) for n in batch.sample.tolist())
    harm = [np.array([measure(n, [1.0] * free, _all(batch, n)) for free in upto]) for n, upto in free_gpus]
    least = np.zeros(1)
    for node in usable.tolist():
        kind = int(batch.kind[node])
        here = harm[kind]
        # a node that no job may use keeps all its GPUs
        left = range(len(here)) if batch.usable[node] else [len(here) - 1]
        after = np.full(len(least) + len(here) - 1, np.inf)
        for free in left:
            np.minimum(after[free : free + len(least)], least + here[free], out=after[free : free + len(least)])
        least = after
    return float(least[max(0, gpus - most) : gpus - fewest + 1].min())


def _all(batch: PreparedBatch, node: int) -> tuple[float, float, float]:
    cpu, memory, nic = batch.amounts[:, node].tolist()
    return cpu, memory, nic


def bound(batch: PreparedBatch, *, brief: bool = False) -> tuple[float, str]:
    """Return a bound on the goal that costs little and what proves it; `brief`: running jobs as if placed at best."""
    best = BestCase(batch)
    floor = np.array([best.floor(j) if brief else best.cost(j) for j in range(len(batch.jobs))])
    state = PlacementState(batch) if brief else start(batch, stay=False)
    for j in batch.pinned:
        if state.rows[j] and batch.problem.goal != "fragmentation":
            floor[j] = max(floor[j], state.cost[j])
    total = float(floor.sum())
    if batch.problem.goal == "fragmentation":
        return total + left_over(batch), "left over"
    return total, "best case"
