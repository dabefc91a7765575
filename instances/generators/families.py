"""Instances by name: the same problem from the same family, seed and size, small or of thousands of ops and jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import Any, cast

import numpy as np

from ..arrays import require_choice, require_number
from ..cluster import Cluster, Level, TreeTopology
from ..errors import InstanceError
from ..partition import PartitionProblem, StepProblem
from ..verify import Problem
from . import GENERATORS, generate

SPLITS = {"train": 0, "validation": 1 << 29, "test": 1 << 30}
"""Where the seeds of each split begin; none has so many that it reaches the next."""
_SEEDS = 1 << 29
GPUS = ("P100", "V100", "A100", "H100", "B200")
_LATENCY, _SLOWER = 5e-6, 12.0
"""Of the network between two servers: seconds, and how many times slower it is than the links inside."""


def seed_of(split: str, index: int) -> int:
    """Return the seed of the `index`-th instance of a split; those of two splits are never the same."""
    require_choice(split, "split", SPLITS)
    require_number(index, "index", whole=True)
    if index >= _SEEDS:
        raise InstanceError("index", f"{index!r} is not below {_SEEDS}")
    return SPLITS[split] + index


def make(problem: str, family: str, seed: int, size: int) -> Any:
    """Make an instance.

    Args:
        problem: throughput, step, placement or schedule.
        family: one of `FAMILIES` of the problem.
        seed: of all that is drawn; see `seed_of`.
        size: at most so many ops, backward ones among them, or nodes, or jobs to schedule.
    """
    check_name(FAMILIES, problem, family, seed, size, 4)
    rng = np.random.default_rng([*problem.encode(), *family.encode(), seed])
    if problem == "placement":
        return generate("gangs", **_gangs(rng, size), seed=seed)
    if problem == "schedule":
        return generate("moldable", **_moldable(rng, size), seed=seed)
    return _partition(rng, problem, family, seed, size)


def check_name(
    families: Mapping[str, Sequence[str]], problem: str, family: str, seed: int, size: int, least: int
) -> None:
    """Raise `InstanceError`, naming the argument, unless `families` has instances of this name."""
    require_choice(problem, "problem", families)
    require_choice(family, "family", families[problem])
    require_number(seed, "seed", whole=True)
    require_number(size, "size", whole=True)
    if size < least:
        raise InstanceError("size", f"{size!r} is less than {least}")


def _whole(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, max(least, most) + 1))


def pick(rng: np.random.Generator, *values: Any) -> Any:
    """Return one of the values, each as likely as the others."""
    return values[int(rng.integers(len(values)))]


def _layered(rng: np.random.Generator, n: int) -> dict[str, Any]:
    layers = _whole(rng, max(1, n // 6), max(1, n // 2))
    return {"ops": n, "layers": layers, "degree": float(rng.uniform(1, min(2.5, n)))}


def _fork_join(rng: np.random.Generator, n: int) -> dict[str, Any]:
    width, depth = _whole(rng, 1, 4), _whole(rng, 1, 3)
    return {"stages": max(1, (n - 1) // (width * depth + 1)), "width": width, "depth": depth}


def _pipeline(rng: np.random.Generator, n: int) -> dict[str, Any]:
    batches = pick(rng, 2, 3, 4)
    return {"micro_batches": batches, "stages": max(1, n // batches), "spread": float(rng.uniform(0.1, 0.6))}


GRAPHS: dict[str, Callable[[np.random.Generator, int], dict[str, Any]]] = {
    "layered": _layered,
    "fork_join": _fork_join,
    "series_parallel": lambda rng, n: {"ops": n, "series": float(rng.uniform(0.3, 0.8))},
    "pipeline": _pipeline,
}
FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("throughput", "step"), tuple(name for name in GENERATORS if name in GRAPHS)),
    "placement": ("gangs",),
    "schedule": ("moldable",),
}
"""The families of each problem that have seeds: networks as published are no random choice."""


def _partition(rng: np.random.Generator, problem: str, family: str, seed: int, size: int) -> Problem:
    """Draw ops, devices, GPUs, how expensive sending is, and in half of the cases memory that binds."""
    training = bool(rng.random() < 0.5)
    ops = _whole(rng, max(2, size // 4), size) // (2 if training else 1)
    made = _graph(rng, family, max(2, ops), (2, 3, 4, 6, 8), training=training, seed=seed)
    tight, room, two = rng.random() < 0.5, float(rng.uniform(1.2, 2.0)), rng.random() < 0.5
    cluster, devices = tight_cluster(made, room) if tight else made.cluster, made.cluster.n_devices
    if problem == "throughput":
        return replace(made, cluster=cluster)
    return StepProblem(made.graph, with_servers(cluster, devices // 2) if two and devices in (4, 6, 8) else cluster)


def _graph(rng: np.random.Generator, kind: str, ops: int, devices: tuple[int, ...], **options: Any) -> PartitionProblem:
    """Draw a graph of a kind on GPUs; an op of a pipeline stands for a layer, and sends less."""
    options |= GRAPHS[kind](rng, ops)
    options["intensity"] = float(np.exp(rng.uniform(log(300), log(10000)))) * (10 if kind == "pipeline" else 1)
    options |= {"devices": pick(rng, *devices), "device_type": pick(rng, *GPUS)}
    made: PartitionProblem = generate(kind, **options)
    return made


def tight_cluster(problem: PartitionProblem, room: float) -> Cluster:
    """Return the cluster with `room` times the memory that the ops need, or what the largest class of them does."""
    graph, cluster = problem.graph, problem.cluster
    lone = graph.colocation.max(initial=-1) + 1 + np.arange(graph.n_ops)
    group = np.unique(np.where(graph.colocation < 0, lone, graph.colocation), return_inverse=True)[1].ravel()
    largest = float(np.bincount(group, graph.memory).max())
    memory = max(room * float(graph.memory.sum()) / cluster.n_devices, 1.01 * largest)
    return replace(cluster, device_types=tuple(replace(kind, memory=memory) for kind in cluster.device_types))


def with_servers(cluster: Cluster, each: int) -> Cluster:
    """Return the cluster in servers of `each` devices, with a slower network between them."""
    inside = cast(TreeTopology, cluster.topology).levels[0]
    levels = (inside, Level("network", inside.bandwidth / _SLOWER, _LATENCY))
    return replace(cluster, topology=TreeTopology.regular(levels, (each, cluster.n_devices // each)))


def _gangs(rng: np.random.Generator, size: int) -> dict[str, Any]:
    """Draw a batch for up to `size` nodes in one rack or two, in half of the cases beside jobs that run."""
    nodes, racks = _whole(rng, max(2, size // 2), size), pick(rng, 1, 2)
    return {
        "racks": racks,
        "nodes": max(1, nodes // racks),
        "gpus": pick(rng, 4, 8),
        "jobs": _whole(rng, max(2, nodes // 2), nodes),
        "load": float(rng.uniform(0.5, 0.95)),
        "running": pick(rng, 0.0, 0.4),
        "optional": pick(rng, 0.0, 0.0, 0.3),
        "down": pick(rng, 0.0, 0.0, 0.1),
    }


def _moldable(rng: np.random.Generator, size: int) -> dict[str, Any]:
    """Draw up to `size` jobs for a pool of 4 to 32 GPUs, or nodes of so many in all."""
    return {
        "jobs": _whole(rng, max(2, size // 2), size),
        "nodes": pick(rng, 1, 2, 4),
        "gpus": pick(rng, 4, 8),
        "load": float(rng.uniform(0.6, 1.6)),
        "capacity": pick(rng, "pool", "nodes"),
        "optional": pick(rng, 0.0, 0.0, 0.3),
    }


LARGE: dict[str, tuple[str, ...]] = {
    "throughput": ("contiguous", "free"),
    "step": ("no contention", "contention"),
    "placement": ("racks",),
    "schedule": ("moldable",),
}
"""The families of each problem."""


def make_large(problem: str, family: str, seed: int, size: int) -> Any:
    """Make an instance of `size` nodes or jobs, or of at most so many ops: shapes round off up to half of them.

    Graphs go to 8, 16, 32 or 64 devices in servers of eight, in half of the cases with memory that binds; batches to
    racks of 8 or 16 nodes at a load of .8 to .95; jobs to pools or nodes of as many GPUs as an eighth of the jobs.
    """
    check_name(LARGE, problem, family, seed, size, 64)
    rng = np.random.default_rng([*b"large", *problem.encode(), seed])
    if problem == "placement":
        return generate("gangs", **_racks(rng, size), seed=seed)
    if problem == "schedule":
        return generate("moldable", **_queue(rng, size), seed=seed)
    return _large(rng, family, seed, size)


def _large(rng: np.random.Generator, family: str, seed: int, size: int) -> Problem:
    kind, training = pick(rng, *GRAPHS), bool(rng.random() < 0.5)
    made = _graph(rng, kind, size // (2 if training else 1), (8, 16, 32, 64), training=training, seed=seed)
    cluster = tight_cluster(made, float(rng.uniform(1.2, 2.0))) if rng.random() < 0.5 else made.cluster
    if family in LARGE["throughput"]:
        return replace(made, cluster=cluster, variant=family)
    each = min(8, cluster.n_devices // 2)
    return StepProblem(made.graph, with_servers(cluster, each), contention=family == "contention")


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
