"""Tiny problems in which every constraint may bind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, PartitionProblem

from ..random_graph import classes, graph_of, runnable


def random_problem(seed: int, variant: str = "contiguous", *, ops: int = 6, devices: int = 3) -> PartitionProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Accelerators of one or two types and perhaps a host; times from equal to very different; transfers from free to
    dear; ops that a type cannot run; colocated ops, twins of a backward pass and backward ops without one; memory
    from ample to too small, so some problems have no plan.

    Args:
        seed: of the local random generator.
        variant: of the problem.
        ops, devices: at most so many; at least one.
    """
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    types = ("gpu", "old", "cpu")
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.15, 0.4, 0.8])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    limit = float(memory.sum() * rng.choice([0.3, 0.5, 0.7, 2.0]))
    made = classes(rng, n)
    time = _times(rng, n)
    graph = graph_of(types, time, memory, output, (u[kept], v[kept]), rng.choice([0.5, 1.0], int(kept.sum())), made)
    shares = rng.permutation(types)[: int(rng.integers(1, 4))]
    present: list[Any] = [*shares, *rng.choice(shares, k)][:k]
    groups = [
        (DeviceType(name, memory=limit if limit and name != "cpu" else None, host=name == "cpu"), present.count(name))
        for name in types
    ]
    latency = float(rng.choice([0.0, 0.5]))
    return PartitionProblem(graph, Cluster.flat(*groups, bandwidth=2.0, latency=latency), variant)


def _times(rng: np.random.Generator, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    spread = rng.choice([0.0, 1.0, 3.0])
    time = np.round(np.exp(rng.normal(0.0, spread, (3, n))) * 4, int(rng.choice([0, 3])))
    return runnable(time, rng)
