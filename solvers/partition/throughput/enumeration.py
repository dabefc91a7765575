"""The optimum by looking at every assignment: slow, simple, and a referee for everything that is clever."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from gangplan.instances import PartitionProblem, precedence
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray

from ..enumeration import assignments

MOST = 2_000_000
"""Assignments worth looking at."""


def optimum(problem: PartitionProblem) -> float | None:
    """Return the least maximum load of any feasible plan in seconds, `None` if there is no feasible plan.

    It takes nothing from the solvers: loads and constraints are those of the verifier, an array operation over all
    assignments each.

    Raises:
        InstanceError: if there are more than `MOST` assignments.
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
