"""Tiny step-time problems in which every constraint may bind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, Level, RampTopology, StepProblem, Topology, TreeTopology

from ..random_graph import classes, graph_of, runnable


def random_problem(seed: int, variant: str = "", *, ops: int = 6, devices: int = 3) -> StepProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Devices of one or two types on a flat switch, a tree of two levels or a mesh; a third of the problems with
    contention, and these one op smaller; times from zero and equal to very different; outputs empty, free or dear; ops
    that a type cannot run; colocated ops or twins of a backward pass; memory from ample to too small, so some problems
    have no plan.

    Args:
        seed: of the local random generator.
        variant: the problem has but one, ``""``.
        ops, devices: at most so many; at least one.
    """
    rng = np.random.default_rng(seed)
    contention = bool(rng.random() < 1 / 3)
    ops -= contention and ops > 1
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.15, 0.4, 0.8])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    limit = float(memory.sum() * rng.choice([0.4, 0.7, 1.0, 2.0]))
    types = ("gpu", "old")
    time = np.round(np.exp(rng.normal(0.0, rng.choice([0.0, 1.0, 2.0]), (2, n))) * 4, int(rng.choice([0, 3])))
    time[:, rng.random(n) < rng.choice([0.0, 0.2])] = 0.0
    time = runnable(time, rng)
    made = classes(rng, n)
    graph = graph_of(types, time, memory, output, (u[kept], v[kept]), rng.choice([0.5, 1.0], int(kept.sum())), made)
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
