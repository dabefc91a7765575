"""Tiny problems of op graphs: memory just filled, amounts from 1e-9 to 1e9, types that lack ops, classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyProblem,
    Level,
    OpGraph,
    PartitionProblem,
    RampTopology,
    StepProblem,
    TreeTopology,
)

VARIANTS = ("contiguous", "convex", "free")


def draw(seed: int, objective: str) -> Any:
    """Return a problem of `on_edge`, two in three with a backward pass, edges of many sizes, racks or RAMP besides."""
    problem = on_edge(seed, objective, VARIANTS[seed % 3] if objective == "throughput" else "")
    return varied(problem, objective, np.random.default_rng([seed, 11]))


def varied(problem: Any, objective: str, rng: np.random.Generator) -> Any:
    """Return a problem, two in three changed as `draw` says."""
    if rng.random() < 0.33:
        return problem
    graph, cluster = problem.graph, problem.cluster
    n, k = graph.n_ops, cluster.n_devices
    if objective != "latency" and n > 1 and rng.random() < 0.7:
        back = np.arange(n) >= rng.integers(1, n) if rng.random() < 0.8 else rng.random(n) < 0.5
        together = rng.integers(-1, n, n) if rng.random() < 0.5 else graph.colocation
        graph = replace(graph, backward=back, colocation=together)
    if rng.random() < 0.5:
        graph = replace(graph, edge_bytes=graph.edge_bytes * rng.choice([0.0, 0.5, 1.0], graph.n_edges))
    first = cluster.topology.levels[0]
    if rng.random() < 0.4:
        outer = Level("rack", first.bandwidth * float(rng.choice([0.1, 1.0, 10.0])), float(rng.choice([0.0, 0.2])))
        group = np.stack([np.sort(rng.integers(0, 2, k)), np.zeros(k, dtype=int)])
        cluster = replace(cluster, topology=TreeTopology((first, outer), group))
    elif rng.random() < 0.2:
        cluster = replace(cluster, topology=RampTopology(k, 1, 1, first.bandwidth, first.latency, first.latency / 3))
    return replace(problem, graph=graph, cluster=cluster)


_STYLES = ("tenths", "wide", "whole", "two", "plain")


def _amounts(rng: np.random.Generator, n: int, style: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if style == "tenths":
        return rng.integers(0, 8, n) / 10
    if style == "wide":
        return np.asarray(10.0 ** rng.integers(-9, 10, n) * rng.integers(1, 10, n))
    if style == "two":
        return np.where(rng.random(n) < 0.3, 1e9, 1e-9) * rng.integers(1, 4, n)
    return rng.integers(0, 5, n) * 1.0 if style == "whole" else rng.random(n)


def on_edge(seed: int, objective: str, variant: str = "") -> Any:
    """Return a tiny problem: memory that some ops just fill, amounts from 1e-9 to 1e9, types that lack ops, classes."""
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(2, {"throughput": 7, "latency": 6, "step": 5}[objective]))
    k = int(rng.integers(1, 3 if objective == "step" else 4))
    types = ("gpu", "old", "cpu")
    style = rng.choice(_STYLES)
    time = np.array([_amounts(rng, n, style) for _ in types])
    time[rng.random((3, n)) < rng.choice([0, 0, 0.2])] = np.inf
    present = list(rng.choice(types, k)) if rng.random() < 0.6 else [rng.choice(types)] * k
    have = [i for i, t in enumerate(types) if t in present] if rng.random() < 0.8 else [0]
    time[have[0], ~np.isfinite(time[have]).any(axis=0)] = 2.0
    memory = _amounts(rng, n, rng.choice(_STYLES))
    output = _amounts(rng, n, rng.choice(_STYLES)) * rng.choice([0, 0.3, 1.0])
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.2, 0.5, 0.8])
    none = np.full(n, -1)
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=types,
        time=time,
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=output,
        source=u[kept],
        target=v[kept],
        edge_bytes=output[u[kept]],
        colocation=rng.integers(-1, max(1, n // 2), n) if rng.random() < 0.3 else none,
    )
    groups = []
    for name in types:
        limit = float(memory[rng.random(n) < rng.choice([0.5, 0.8, 1])].sum())
        limit = float(f"{limit:.9g}") if rng.random() < 0.4 else limit
        kind = DeviceType(name, memory=limit if limit > 0 and rng.random() > 0.15 else None, host=name == "cpu")
        groups.append((kind, present.count(name)))
    bandwidth, wait = float(rng.choice([1.0, 1.0, 1e-6, 1e6])), float(rng.choice([0, 0, 0.1, 1e-9]))
    cluster = Cluster.flat(*groups, bandwidth=bandwidth, latency=wait)
    if objective == "throughput":
        return PartitionProblem(graph, cluster, variant)
    if objective == "latency":
        return LatencyProblem(graph, cluster)
    if k > 1 and rng.random() < 0.3:
        levels = Level("a", bandwidth, wait), Level("b", bandwidth * float(rng.choice([0.1, 1.0])), wait)
        tree = TreeTopology(levels, np.stack([np.arange(k), np.zeros(k, dtype=int)]).astype(np.int32))
        cluster = Cluster(cluster.device_types, cluster.type_of, tree)
    return StepProblem(graph, cluster, contention=bool(rng.random() < 0.4))
