"""Reasons, easy to see, why a batch has no placement."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.verify import TOLERANCE

from .build import stays
from .gpu_assignment import undecided
from .prepare import Batch
from .state import State


def impossible(batch: Batch) -> str | None:
    """Return why there is no placement, in words, or `None` if no reason is easy to see."""
    state = State(batch)
    for j, rows in batch.pinned.items():
        if not stays(state, j, rows):
            missed = any(undecided(*state.shares(node, j, w)) for node, (w, _) in rows.items())
            return None if missed else f"job {batch.jobs[j].name} runs, may not move and cannot stay"
        state.add(j, rows)
    return _one(batch, state) or _together(batch)


def _one(batch: Batch, state: State) -> str | None:
    """Return a job that fits nowhere beside those that are pinned."""
    kinds: set[object] = set()  # thousands of jobs are of few kinds
    for j, job in enumerate(batch.jobs):
        if job.value is not None or state.rows[j]:
            continue
        kind = (
            *(job.model, job.worker, job.workers, job.servers, job.server, job.requires),
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


def _together(batch: Batch) -> str | None:
    """Return a resource that is short for the jobs that are confined to the same nodes."""
    fleet = batch.problem.fleet
    count = np.bincount(batch.kind, minlength=len(batch.sample))
    must = [j for j, job in enumerate(batch.jobs) if job.value is None]
    least = np.array([job.workers[0] for job in batch.jobs])
    servers = np.array([job.servers for job in batch.jobs])
    resources: dict[str, tuple[Any, FloatArray, FloatArray]] = {
        "GPUs": (fleet.gpus, batch.each * batch.share, np.zeros(len(batch.jobs))),
        "cores": (fleet.cpu, batch.worker_cpu, batch.server_cpu),
        "bytes of memory": (fleet.memory, batch.worker_memory, batch.server_memory),
        "bytes/s of NICs": (batch.nic, batch.worker_nic, batch.server_nic),
    }
    # workers go where they can compute, servers wherever the job may be
    reach = [(batch.room[j] > 0) | (batch.allowed[j] if batch.jobs[j].servers else False) for j in must]
    sets: dict[bytes, BoolArray] = {x.tobytes(): x for x in reach}
    for inside in sets.values():
        confined = [j for j, own in zip(must, reach, strict=True) if not (own & ~inside).any()]
        for name, (has, worker, server) in resources.items():
            need = float((least * worker + servers * server)[confined].sum())
            total = float((has[batch.sample] * count)[inside].sum())
            if need > total * (1 + TOLERANCE):
                where = "the fleet" if inside.all() else f"the {int(count[inside].sum())} nodes that they may use"
                return f"{len(confined)} jobs need {need:.6g} {name} together, {where} have {total:.6g}"
    return None
