"""Tiny problems in which every constraint may bind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StagesProblem, TensorMenu, TreeTopology, megatron
from gangplan.instances.graph import with_backward
from gangplan.instances.partition import MEMORY_MODELS

from ..random_graph import graph_of, nobody

SHAPES: tuple[tuple[int, ...], ...] = ((1,), (2,), (3,), (4,), (2, 2), (2, 2), (3, 2), (1, 2, 2), (2, 1), (2, 3))


def random_problem(seed: int, variant: str = "", *, ops: int = 4) -> StagesProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Clusters of one to three levels; weights and activations from none to dear; memory from ample to too small, so
    some problems have no plan; with a backward pass or without; some with degrees of tensor parallelism, of which
    some ops lack some.

    Args:
        seed: of the local random generator.
        variant: there is but one.
        ops: forward ops, at most so many.
    """
    rng = np.random.default_rng(seed)
    graph = _graph(rng, int(rng.integers(1, ops + 1)))
    members = SHAPES[int(rng.integers(len(SHAPES)))]
    speeds = rng.choice([0.5, 2.0, 8.0], len(members))
    latency = float(rng.choice([0.0, 0.0, 0.25]))
    levels = tuple(Level(f"level {i + 1}", float(x), latency) for i, x in enumerate(speeds))
    total = float(graph.memory.sum())
    limit = total * float(rng.choice([0.5, 0.8, 1.5, 4.0]))
    kind = DeviceType("gpu", memory=limit if limit > 0 and rng.random() < 0.8 else None)
    topology = TreeTopology.regular(levels, members)
    cluster = Cluster((kind,), np.zeros(topology.n_devices, dtype=np.int32), topology)
    training = bool(graph.backward.any())
    return StagesProblem(
        graph,
        cluster,
        activations=bool(rng.random() < 0.7),
        recompute=training and bool(rng.random() < 0.3),
        stashing=bool(rng.random() < 0.7),
        memory_model=str(rng.choice(MEMORY_MODELS, p=[0.6, 0.3, 0.1])),
        menu=_menu(rng, graph) if rng.random() < 0.4 else None,
    )


def _graph(rng: np.random.Generator, n: int) -> OpGraph:
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.3, 0.6, 1.0])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 4, n)
    weights = rng.choice([0.0, 1.0, 3.0]) * rng.integers(0, 4, n)
    colocation, twin, backward = nobody(n)
    if rng.random() >= 0.7:
        colocation = rng.integers(-1, max(1, n // 2), n)
    time = rng.integers(0, 9, (1, n)).astype(float)
    made = colocation, twin, backward
    forward = graph_of(("gpu",), time, output + weights, output, (u[kept], v[kept]), made=made, weights=weights)
    if rng.random() < 0.3:
        return forward
    return with_backward(forward, rng.integers(0, 9, (1, n)).astype(float), output)


def _menu(rng: np.random.Generator, graph: OpGraph) -> TensorMenu:
    menu = megatron(graph, "gpu", [[1, 2], [2], [1, 3], [1, 2, 4]][int(rng.integers(4))])
    time: Any = menu.time * rng.choice([1.0, 1.5], menu.time.shape)
    time[rng.random(time.shape) < rng.choice([0.0, 0.15])] = np.inf
    return replace(menu, time=time)
