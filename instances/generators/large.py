"""Large instances by name: thousands of ops on up to 64 devices, a thousand nodes, thousands of jobs."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from ..partition import PartitionProblem, StepProblem
from ..verify import Problem
from . import generate
from .families import GPUS, GRAPHS, check_name, pick, tight_cluster, with_servers

LARGE: dict[str, tuple[str, ...]] = {
    "throughput": ("contiguous", "free"),
    "step": ("no contention", "contention"),
    "placement": ("racks",),
    "schedule": ("moldable",),
}
"""The families of each problem."""


def make_large(problem: str, family: str, seed: int, size: int) -> Problem:
    """Make an instance of `size` nodes or jobs, or of at most so many ops: shapes round off up to half of them.

    Graphs go to 8, 16, 32 or 64 devices in servers of eight, in half of the cases with memory that binds; batches to
    racks of 8 or 16 nodes at a load of .8 to .95; jobs to pools or nodes of as many GPUs as an eighth of the jobs.
    """
    check_name(LARGE, problem, family, seed, size, 64)
    rng = np.random.default_rng([*b"large", *problem.encode(), seed])
    if problem == "placement":
        racked: Problem = generate("gangs", **_racks(rng, size), seed=seed)
        return racked
    if problem == "schedule":
        jobs: Problem = generate("moldable", **_queue(rng, size), seed=seed)
        return jobs
    return _graph(rng, family, seed, size)


def _graph(rng: np.random.Generator, family: str, seed: int, size: int) -> Problem:
    kind, training = pick(rng, *GRAPHS), bool(rng.random() < 0.5)
    options = GRAPHS[kind](rng, size // (2 if training else 1))
    options["intensity"] = float(np.exp(rng.uniform(log(300), log(10000)))) * (10 if kind == "pipeline" else 1)
    devices = pick(rng, 8, 16, 32, 64)
    made: PartitionProblem = generate(
        kind, training=training, devices=devices, device_type=pick(rng, *GPUS), seed=seed, **options
    )
    cluster = tight_cluster(made, float(rng.uniform(1.2, 2.0))) if rng.random() < 0.5 else made.cluster
    if family in LARGE["throughput"]:
        return replace(made, cluster=cluster, variant=family)
    return StepProblem(made.graph, with_servers(cluster, min(8, devices // 2)), contention=family == "contention")


def _racks(rng: np.random.Generator, nodes: int) -> dict[str, Any]:
    each = pick(rng, 8, 16)
    return {
        "racks": max(1, nodes // each),
        "nodes": each,
        "gpus": pick(rng, 4, 8),
        "jobs": int(nodes * rng.uniform(1.2, 2.2)),
        "load": float(rng.uniform(0.8, 0.95)),
        "running": pick(rng, 0.0, 0.4),
        "optional": pick(rng, 0.0, 0.0, 0.3),
        "down": pick(rng, 0.0, 0.0, 0.05),
    }


def _queue(rng: np.random.Generator, jobs: int) -> dict[str, Any]:
    return {
        "jobs": jobs,
        "nodes": max(2, jobs // 64),
        "gpus": 8,
        "load": float(rng.uniform(1.0, 2.5)),
        "capacity": pick(rng, "pool", "nodes"),
        "goal": pick(rng, "weighted_completion", "mean_jct", "makespan"),
        "optional": pick(rng, 0.0, 0.0, 0.3),
    }
