"""The optimum of tiny problems by looking at every assignment, and such problems in which every constraint may bind."""

from __future__ import annotations

import numpy as np

from gangplan.instances import Cluster, DeviceType, LatencyProblem
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray

from ..referee import assignments, graph_of, nobody, runnable

MOST = 500_000
"""Assignments worth looking at."""


def optimum(problem: LatencyProblem) -> float | None:
    """Return the least latency of any feasible plan in seconds, `None` if there is no feasible plan.

    It takes nothing from the solvers, nor from the verifier: a constraint is an array operation over all assignments.
    More than `MOST` assignments are refused.
    """
    where = assignments(problem, MOST)
    where = where[_acyclic(problem, where)]
    return float(_latency(problem, where).min()) if len(where) else None


def _together(problem: LatencyProblem, where: IntArray) -> BoolArray:
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


def random_problem(seed: int, variant: str = "", *, ops: int = 6, devices: int = 4) -> LatencyProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Accelerators of one or two types, hosts or none, some with little memory; hosts from as fast as an accelerator to
    ten times slower; transfers from free to dear; ops without time, without memory, without output; ops that a type
    cannot run; colocated ops; memory from ample to too small, so some problems have no plan. `ops`, `devices`: at most.
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
