"""Tiny problems in which every constraint may bind."""

from __future__ import annotations

import numpy as np

from gangplan.instances import Cluster, DeviceType, LatencyProblem
from gangplan.instances.arrays import FloatArray

from ..random_graph import graph_of, nobody, runnable


def random_problem(seed: int, variant: str = "", *, ops: int = 6, devices: int = 4) -> LatencyProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Accelerators of one or two types, hosts or none, some with little memory; hosts from as fast as an accelerator to
    ten times slower; transfers from free to dear; ops without time, without memory, without output; ops that a type
    cannot run; colocated ops; memory from ample to too small, so some problems have no plan.

    Args:
        seed: of the local random generator.
        variant: latency has but one.
        ops, devices: at most so many; at least one.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(min(2, ops), ops + 1))
    u, v = np.triu_indices(n, 1)
    kept = (rng.random(len(u)) < rng.choice([0.15, 0.3, 0.7])) | ((v == u + 1) & (rng.random() < 0.3))
    output = rng.choice([0.0, 0.5, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    colocation = (rng.integers(-1, n, n) if rng.random() < 0.4 else np.full(n, -1)).astype(np.int32)
    _, twin, backward = nobody(n)
    types = ("gpu", "old", "cpu")
    graph = graph_of(types, _times(rng, n), memory, output, (u[kept], v[kept]), made=(colocation, twin, backward))
    limit = float(memory.sum() * rng.choice([0.4, 0.6, 1.0, 2.0])) or None
    scarce = limit if rng.random() < 0.2 else None
    counts = rng.multinomial(
        int(rng.integers(1, devices + 1)), [[0.6, 0.1, 0.3], [0.9, 0.1, 0], [0.4, 0.3, 0.3]][rng.integers(3)]
    )
    kinds = (
        DeviceType("gpu", memory=limit),
        DeviceType("old", memory=limit),
        DeviceType("cpu", memory=scarce, host=True),
    )
    groups = [(kind, int(count)) for kind, count in zip(kinds, counts, strict=True)]
    latency = float(rng.choice([0.0, 0.5]))
    return LatencyProblem(graph, Cluster.flat(*groups, bandwidth=2.0, latency=latency))


def _times(rng: np.random.Generator, n: int) -> FloatArray:
    base = np.round(np.exp(rng.normal(0.0, rng.choice([0.0, 1.0, 2.0]), n)) * 2, int(rng.choice([0, 2])))
    base[rng.random(n) < 0.25] = 0.0
    time = base * np.array([[1.0], [rng.choice([0.5, 2.0])], [rng.choice([1.0, 3.0, 10.0])]])
    return runnable(time, rng)
