"""The optimum by looking at every assignment: slow, simple, and a referee for everything that is clever."""

from __future__ import annotations

import numpy as np

from gangplan.instances import LatencyProblem
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray

from ..enumeration import assignments

MOST = 500_000
"""Assignments worth looking at."""


def optimum(problem: LatencyProblem) -> float | None:
    """Return the least latency of any feasible plan in seconds, `None` if there is no feasible plan.

    It takes nothing from the solvers, nor from the verifier: a constraint is an array operation over all assignments.

    Raises:
        InstanceError: if there are more than `MOST` assignments.
    """
    where = assignments(problem, MOST)
    where = where[_acyclic(problem, where)]
    return float(_latency(problem, where).min()) if len(where) else None


def _together(problem: LatencyProblem, where: IntArray) -> BoolArray:
    """Return whether ops u and v are in one call, or the same op, (plans, n, n)."""
    same = (where[:, :, None] == where[:, None, :]) & ~problem.hosts()[where][:, :, None]
    return np.asarray(same | np.eye(where.shape[1], dtype=bool))


def _acyclic(problem: LatencyProblem, where: IntArray) -> BoolArray:
    together = _together(problem, where)
    waits = together.copy()
    waits[:, problem.graph.source, problem.graph.target] = True
    for middle in range(where.shape[1]):
        waits |= waits[:, :, middle, None] & waits[:, middle, None, :]
    return np.asarray(~(waits & waits.transpose(0, 2, 1) & ~together).any(axis=(1, 2)))


def _latency(problem: LatencyProblem, where: IntArray) -> FloatArray:
    graph = problem.graph
    n = where.shape[1]
    host = problem.hosts()[where]
    together = _together(problem, where)
    own = problem.time()[problem.cluster.type_of[where], np.arange(n)]
    load = np.einsum("pv,puv->pu", own, together)
    cost = problem.transfer()
    for a in np.unique(graph.source).tolist():
        uses = graph.target[graph.source == a]
        outside = ~together[:, :, uses].all(axis=2)
        inside = together[:, :, uses].any(axis=2)
        # a call with the producer sends what another unit uses, one without it receives what it uses
        crosses = np.where(together[:, :, a], outside, inside)
        load += cost[a] * (crosses & ~host)
    done = np.zeros(where.shape)
    for _ in range(n):
        start = np.zeros(where.shape)
        for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            waits = together[:, :, b] & ~together[:, :, a]
            start = np.maximum(start, waits * done[:, a, None])
        done = start + load
    return np.asarray(done.max(axis=1))
