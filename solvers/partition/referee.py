"""What referees of tiny problems share: all assignments of ops to devices, and graphs in which everything may bind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, OpGraph
from gangplan.instances.arrays import BoolArray, IntArray
from gangplan.instances.verify import TOLERANCE


def assignments(problem: GraphProblem, most: int) -> IntArray:
    """Return the devices of the ops in each assignment, int32 (assignments, n); a constraint is an array operation.
    More than `most`, before any is left out, are refused.
    """
    n, k = problem.graph.n_ops, problem.cluster.n_devices
    if k**n > most:
        raise InstanceError("instance", f"{k} devices to the power of {n} ops is more than {most} assignments")
    where = np.stack(np.unravel_index(np.arange(k**n), (k,) * n), axis=1).astype(np.int32)
    for keeps in (_supported, _colocated, _fitting):
        where = where[keeps(problem, where)]
    return where


def _supported(problem: GraphProblem, where: IntArray) -> BoolArray:
    kind = problem.cluster.type_of[where]
    return np.asarray(np.isfinite(problem.time()[kind, np.arange(where.shape[1])]).all(axis=1))


def _colocated(problem: GraphProblem, where: IntArray) -> BoolArray:
    colocation = problem.graph.colocation
    ok = np.ones(len(where), dtype=bool)
    for c in np.unique(colocation[colocation >= 0]):
        members = where[:, colocation == c]
        ok &= (members == members[:, :1]).all(axis=1)
    return ok


def _fitting(problem: GraphProblem, where: IntArray) -> BoolArray:
    ok = np.ones(len(where), dtype=bool)
    for d, limit in enumerate(problem.capacity().tolist()):
        ok &= (where == d) @ problem.graph.memory <= limit * (1 + TOLERANCE)
    return ok


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
