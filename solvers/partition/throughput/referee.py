"""The optimum of tiny problems by looking at every assignment, and such problems in which every constraint may bind."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, PartitionProblem, precedence
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray

from ..referee import assignments, classes, graph_of, runnable

MOST = 2_000_000
"""Assignments worth looking at."""


def optimum(problem: PartitionProblem) -> float | None:
    """Return the least maximum load of any feasible plan in seconds, `None` if there is no feasible plan.

    It takes nothing from the solvers: loads and constraints are those of the verifier, an array operation over all
    assignments each. More than `MOST` assignments are refused.
    """
    where = assignments(problem, MOST)
    if problem.variant == "contiguous":
        where = where[_contiguous(problem, where)]
    elif problem.variant == "convex":
        where = where[_convex(problem, where)]
    return float(_loads(problem, where).max(axis=1).min()) if len(where) else None


def _contiguous(problem: PartitionProblem, where: IntArray) -> BoolArray:
    earlier, later = precedence(problem.graph)
    ok = np.zeros(len(where), dtype=bool)
    for order in permutations(range(problem.cluster.n_devices)):
        stage = np.array(order)[where]
        ok |= (stage[:, earlier] <= stage[:, later]).all(axis=1)
    return ok


def _convex(problem: PartitionProblem, where: IntArray) -> BoolArray:
    n = problem.graph.n_ops
    below = np.zeros((n, n), dtype=bool)
    below[precedence(problem.graph)] = True
    for middle in range(n):
        below |= below[:, middle, None] & below[middle]
    ok = np.ones(len(where), dtype=bool)
    for u, v in np.argwhere(below):
        for w in np.flatnonzero(below[u] & below[:, v]):
            ok &= (where[:, u] != where[:, v]) | (where[:, u] == where[:, w])
    return ok


def _loads(problem: PartitionProblem, where: IntArray) -> FloatArray:
    graph, cluster = problem.graph, problem.cluster
    time, transfer = problem.time(), problem.transfer()
    loads = np.zeros((len(where), cluster.n_devices))
    for d, t in enumerate(cluster.type_of.tolist()):
        here = where == d
        loads[:, d] = here @ np.where(np.isfinite(time[t]), time[t], 0.0)
        if cluster.device_types[t].host:
            continue
        for u in np.unique(graph.source):
            consumers = here[:, graph.target[graph.source == u]]
            crosses = np.where(here[:, u], ~consumers.all(axis=1), consumers.any(axis=1))
            loads[:, d] += transfer[u] * crosses
    return loads


def random_problem(seed: int, variant: str = "contiguous", *, ops: int = 6, devices: int = 3) -> PartitionProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Accelerators of one or two types and perhaps a host; times from equal to very different; transfers from free to
    dear; ops that a type cannot run; colocated ops, twins of a backward pass and backward ops without one; memory
    from ample to too small, so some problems have no plan. `ops`, `devices`: at most.
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
