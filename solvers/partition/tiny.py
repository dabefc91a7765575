"""Tiny problems of throughput, latency and step in which every constraint may bind, the same for the same arguments.

Ops that a device type cannot run, colocated ops or twins of a backward pass, times from equal to very different,
outputs from free to dear, memory from ample to too small: some problems have no plan.
"""

from __future__ import annotations

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
    Topology,
    TreeTopology,
)

Array = np.ndarray[Any, np.dtype[Any]]
Classes = tuple[Array, Array, Array]


def classes(rng: np.random.Generator, count: int) -> Classes:
    """Return colocation, twins and backward ops of so many ops, int (n,) twice and bool (n,), or none of these."""
    colocation, twin, backward = nobody(count)
    style = rng.choice(["none", "classes", "training"])
    if style == "classes":
        colocation = rng.integers(-1, max(1, count // 2), count)
    if style == "training":
        # forward ops first, then the mirror image; some backward ops have lost their forward op
        half = count // 2
        backward[count - half :] = True
        for i in range(half):
            if rng.random() < 0.8:
                twin[i], twin[count - 1 - i] = count - 1 - i, i
                colocation[i] = colocation[count - 1 - i] = i
    return colocation, twin, backward


def nobody(count: int) -> Classes:
    """Return no colocation, no twins and no backward ops."""
    return np.full(count, -1), np.full(count, -1), np.zeros(count, dtype=bool)


def runnable(time: Array, rng: np.random.Generator) -> Array:
    """Return seconds (T, n) of which some may be infinite, but not of the first type where all others are."""
    time[rng.random(time.shape) < rng.choice([0.0, 0.0, 0.15])] = np.inf
    # the graph must have a type for every op; the cluster need not have that type
    time[0, ~np.isfinite(time).any(axis=0)] = 1.0
    return time


def graph_of(
    types: tuple[str, ...], time: Array, memory: Array, output: Array, edges: tuple[Array, Array],
    share: Array | float = 1.0, made: Classes | None = None, weights: Array | None = None,
) -> OpGraph:  # fmt: skip
    """Return a graph, its ops called op0, op1 and so on; each edge takes a share of its op's output."""
    source, target = edges
    count = len(memory)
    colocation, twin, backward = nobody(count) if made is None else made
    return OpGraph(
        names=tuple(f"op{i}" for i in range(count)),
        device_types=types,
        time=time,
        memory=memory,
        parameter_bytes=np.zeros(count) if weights is None else weights,
        activation_bytes=output,
        source=source,
        target=target,
        edge_bytes=output[source] * share,
        colocation=colocation,
        twin=twin,
        backward=backward,
    )


def _edges(rng: np.random.Generator, n: int) -> tuple[tuple[Array, Array], Array, Array]:
    """Return source and target of edges, and bytes of outputs and of ops."""
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.15, 0.4, 0.8])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 5, n)
    return (u[kept], v[kept]), output, rng.integers(0, 5, n).astype(float)


def _seconds(rng: np.random.Generator, spreads: list[float], shape: tuple[int, ...], scale: int, places: int) -> Array:
    """Return log-normal seconds, whole or with so many decimal places."""
    return np.round(np.exp(rng.normal(0.0, rng.choice(spreads), shape)) * scale, int(rng.choice([0, places])))


def _share(rng: np.random.Generator, edges: tuple[Array, Array]) -> Array:
    return rng.choice([0.5, 1.0], len(edges[0]))


def random_throughput(seed: int, variant: str = "contiguous", *, ops: int = 6, devices: int = 3) -> PartitionProblem:
    """Make a problem on accelerators of one or two types and perhaps a host; of `ops` and `devices` at most."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    types = ("gpu", "old", "cpu")
    edges, output, memory = _edges(rng, n)
    limit = float(memory.sum() * rng.choice([0.3, 0.5, 0.7, 2.0]))
    made = classes(rng, n)
    time = runnable(_seconds(rng, [0.0, 1.0, 3.0], (3, n), 4, 3), rng)
    graph = graph_of(types, time, memory, output, edges, _share(rng, edges), made)
    shares = rng.permutation(types)[: int(rng.integers(1, 4))]
    present: list[Any] = [*shares, *rng.choice(shares, k)][:k]
    groups = [
        (DeviceType(name, memory=limit if limit and name != "cpu" else None, host=name == "cpu"), present.count(name))
        for name in types
    ]
    latency = float(rng.choice([0.0, 0.5]))
    return PartitionProblem(graph, Cluster.flat(*groups, bandwidth=2.0, latency=latency), variant)


def random_latency(seed: int, variant: str = "", *, ops: int = 6, devices: int = 4) -> LatencyProblem:
    """Make a problem on accelerators of one or two types, some with little memory; of `ops` and `devices` at most.

    Hosts, if any, are as fast as an accelerator or up to ten times slower.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(min(2, ops), ops + 1))
    u, v = np.triu_indices(n, 1)
    kept = (rng.random(len(u)) < rng.choice([0.15, 0.3, 0.7])) | ((v == u + 1) & (rng.random() < 0.3))
    output = rng.choice([0.0, 0.5, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    colocation = rng.integers(-1, n, n) if rng.random() < 0.4 else np.full(n, -1)
    base = _seconds(rng, [0.0, 1.0, 2.0], (n,), 2, 2)
    base[rng.random(n) < 0.25] = 0.0
    time = base * np.array([[1.0], [rng.choice([0.5, 2.0])], [rng.choice([1.0, 3.0, 10.0])]])
    types, made = ("gpu", "old", "cpu"), (colocation, *nobody(n)[1:])
    graph = graph_of(types, runnable(time, rng), memory, output, (u[kept], v[kept]), made=made)
    limit = float(memory.sum() * rng.choice([0.4, 0.6, 1.0, 2.0])) or None
    scarce = limit if rng.random() < 0.2 else None
    shares = [[0.6, 0.1, 0.3], [0.9, 0.1, 0], [0.4, 0.3, 0.3]]
    counts = rng.multinomial(int(rng.integers(1, devices + 1)), shares[rng.integers(3)]).tolist()
    kinds = [DeviceType(x, memory=scarce if x == "cpu" else limit, host=x == "cpu") for x in types]
    latency = float(rng.choice([0.0, 0.5]))
    return LatencyProblem(graph, Cluster.flat(*zip(kinds, counts, strict=True), bandwidth=2.0, latency=latency))


def random_step(seed: int, variant: str = "", *, ops: int = 6, devices: int = 3) -> StepProblem:
    """Make a problem on devices of one or two types on a flat switch, a tree of two levels or a mesh.

    A third of the problems have contention, and these one op less. Of `ops` and `devices` at most.
    """
    rng = np.random.default_rng(seed)
    contention = bool(rng.random() < 1 / 3)
    ops -= contention and ops > 1
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    edges, output, memory = _edges(rng, n)
    limit = float(memory.sum() * rng.choice([0.4, 0.7, 1.0, 2.0]))
    time = _seconds(rng, [0.0, 1.0, 2.0], (2, n), 4, 3)
    time[:, rng.random(n) < rng.choice([0.0, 0.2])] = 0.0
    time, made = runnable(time, rng), classes(rng, n)
    graph = graph_of(("gpu", "old"), time, memory, output, edges, _share(rng, edges), made)
    kinds = (DeviceType("gpu", memory=limit or None), DeviceType("old", memory=2 * limit or None))
    type_of: Any = rng.integers(0, 2, k) if rng.random() < 0.4 else np.zeros(k, dtype=np.int32)
    return StepProblem(graph, Cluster(kinds, type_of, _topology(rng, k)), contention)


def _topology(rng: np.random.Generator, k: int) -> Topology:
    style = rng.choice(["flat", "tree", "mesh"])
    if style == "mesh":
        return RampTopology(1, k, 1, channel_bandwidth=2.0, propagation=float(rng.choice([0.0, 0.5])), io_latency=0.0)
    near = Level("server", 2.0, float(rng.choice([0.0, 0.5])))
    if style == "flat":
        return TreeTopology((near,), np.zeros((1, k), dtype=np.int32))
    # now and then the rack is no slower than the server: nobody promises that delays grow with distance
    far = Level("rack", float(rng.choice([0.5, 1.0, 4.0])), float(rng.choice([0.0, 1.0])))
    group: Any = np.zeros((2, k), dtype=np.int32)
    group[0] = rng.integers(0, 2, k)
    return TreeTopology((near, far), group)
