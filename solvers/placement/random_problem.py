"""Tiny problems in which every constraint may bind."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.placement.rate import GIGABYTE

_GOALS = 0.4, 0.2, 0.2, 0.2
_KEPT = 64
"""Problems kept, with `enumeration.optimum`, which is then looked for once and not once a method."""


@lru_cache(maxsize=_KEPT)
def random_problem(seed: int, variant: str = "", *, jobs: int = 3, nodes: int = 3) -> PlacementProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Two racks or one, GPUs of two types that some models cannot run on, nodes without GPUs or not usable, cores and
    memory from ample to scarce, NICs set aside in part; gangs of one to three workers or a choice, whole GPUs and
    shares, with all collectives, selectors, jobs apart, spread, whole nodes; optional jobs, jobs that run and stay or
    may move. Some problems have no plan.

    Args:
        seed: of the local random generator.
        variant: there is but one, ``""``.
        jobs, nodes: at most so many; at least one.
    """
    rng = np.random.default_rng(seed)
    m, count = int(rng.integers((nodes + 1) // 2, nodes + 1)), int(rng.integers(1, jobs + 1))
    fleet = _fleet(rng, m)
    batch: list[GangJob] = [_job(rng, i) for i in range(count)]
    if count > 1 and rng.random() < 0.2:
        batch[1] = replace(batch[1], apart=(batch[0].name,))
    speeds, running, goal = _speeds(rng), _running(rng, fleet, batch), str(rng.choice(GOALS, p=_GOALS))
    if rng.random() < 0.15:
        batch = [_reserving(rng, job, fleet.topology.levels[0].bandwidth) for job in batch]
    if goal == "communication":  # links of bytes/s: pairs of GPUs take long
        batch = [job if job.value is None else replace(job, value=job.value * GIGABYTE) for job in batch]
        running = tuple(replace(run, migration=run.migration * GIGABYTE) for run in running)
    mix = _mix(rng) if rng.random() < 0.5 else ()
    return PlacementProblem(fleet, tuple(batch), speeds, running, goal, mix)


def _mix(rng: np.random.Generator) -> tuple[Expected, ...]:
    """Return tasks to come: shares and whole GPUs, some for one GPU type only, some with more cores than nodes have."""
    gpus, cores = rng.choice([0.0, 0.25, 0.4, 0.5, 1.0, 2.0, 3.0], 3), rng.choice([0.0, 1.0, 3.0, 8.0], 3)
    types = [str(x) for x in rng.choice(["", "new", "old"], 3, p=[0.6, 0.2, 0.2])]
    return tuple(
        Expected(Task(Demand(float(g), float(c)), (kind,) if kind else ()), float(rng.uniform(0.1, 1.0)))
        for g, c, kind in zip(gpus, cores, types, strict=True)
    )


def _fleet(rng: np.random.Generator, m: int) -> Fleet:
    rack = np.sort(rng.integers(0, 2, m))
    levels = Level("rack", float(rng.choice([1.0, 4.0]))), Level("cluster", float(rng.choice([0.5, 2.0, 8.0])))
    usable = rng.random(m) < 0.95
    return Fleet(
        names=tuple(f"n{i}" for i in range(m)),
        gpu_types=("new", "old"),
        gpu_type=(rng.random(m) < rng.choice([0.0, 0.5])).astype(int),
        gpus=rng.choice([0, 1, 2, 2, 3, 4, 4], m),
        cpu=rng.choice([3.0, 6.0, 12.0], m),
        memory=np.full(m, float(rng.choice([3.0, 50.0]))),
        link=np.full(m, float(rng.choice([2.0, 10.0]))),
        topology=TreeTopology(levels, np.stack([rack, np.zeros(m, dtype=int)])),
        labels=("ssd",),
        labelled=(rng.random(m) < 0.7)[None],
        usable=usable,
    )


def _job(rng: np.random.Generator, i: int) -> GangJob:
    kind = str(rng.choice(["ring", "tree", "hierarchical", "ps"]))
    servers = int(rng.integers(1, 3)) if kind == "ps" else 0
    share = rng.random() < 0.35
    gpu = float(rng.choice([0.25, 0.5, 0.6])) if share else float(rng.choice([0, 1, 1, 1, 1, 2]))
    worker = Demand(gpu, float(rng.choice([0.0, 0.0, 1.0, 2.0])), float(rng.choice([0.0, 1.0])))
    options: dict[str, Any] = {}
    if rng.random() < 0.15:
        options["most_per_node"] = 1
    if rng.random() < 0.15:
        options["requires"] = ("ssd",)
    if rng.random() < 0.3:
        options["value"] = float(rng.choice([0.5, 2.0, 6.0]))
    return GangJob(
        name=f"j{i}",
        model=str(rng.choice(["a", "b"])),
        workers=((1,), (1,), (2,), (2,), (1, 2), (3,))[int(rng.integers(6))],
        worker=worker,
        collective=kind,
        servers=servers,
        server=Demand(0.0, float(rng.choice([0.0, 1.0])), 1.0) if servers else Demand(0.0),
        weight=float(rng.choice([0.5, 1.0, 3.0])),
        whole_nodes=bool(rng.random() < 0.1),
        **options,
    )


def _reserving(rng: np.random.Generator, job: GangJob, nic: float) -> GangJob:
    worker, server = (float(rng.choice([0.0, 0.25, 0.4, 0.6])) * nic for _ in range(2))
    return replace(
        job,
        worker=replace(job.worker, nic=worker),
        server=replace(job.server, nic=server if job.servers else 0.0),
    )


def _speeds(rng: np.random.Generator) -> SpeedModel:
    host = rng.choice([0.0, 0.2, 0.6], (2, 2))
    compute = np.array([[1.0, 2.0], [rng.choice([1.5, 1.5, np.inf]), 3.0]])
    return SpeedModel(
        models=("a", "b"),
        gpu_types=("new", "old"),
        compute=compute,
        gradient=rng.choice([0.0, 1.0, 6.0], 2),
        overlap=rng.choice([0.0, 0.5, 1.0], 2),
        host=host,
        gpu=host + rng.choice([0.0, 0.5, 1.0], (2, 2)),
    )


def _running(rng: np.random.Generator, fleet: Fleet, batch: list[GangJob]) -> tuple[Running, ...]:
    """Return where some jobs are already; it may be where they could not go now."""
    found = []
    for job in batch:
        if rng.random() < 0.2:
            need = job.workers[0] * job.worker.gpu
            able = np.flatnonzero((fleet.gpus >= need * rng.choice([0, 1, 1])) & (fleet.gpus > 0))
            node = fleet.names[int(rng.choice(able))] if len(able) else fleet.names[0]
            movable = bool(rng.random() < 0.6)
            found.append(Running(job.name, (node,), (job.workers[0],), (job.servers,), movable, float(movable) / 2))
    return tuple(found)
