"""METIS through `pymetis` (Karypis and Kumar 1998): parts of equal work and a small cut, then made a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymetis

from gangplan.instances import PartitionPlan, precedence, verify
from gangplan.instances.arrays import IntArray
from gangplan.solvers import Run
from gangplan.solvers.partition.step.plain import earliest

_UNITS = 1_000_000
"""Whole numbers that METIS has for the work, and for the bytes, of a graph."""


def solve(run: Run) -> None:
    """Offer METIS's partition: for throughput in the order of its parts, for step with ops as early as they can.

    Raises:
        NotImplementedError: for other objectives.
    """
    problem = run.problem
    if problem.objective not in ("throughput", "step"):
        raise NotImplementedError("METIS partitions graphs: it knows neither calls, replicas nor time")
    graph, cluster = problem.graph, problem.cluster
    n, hosts = graph.n_ops, np.array([kind.host for kind in cluster.device_types])[cluster.type_of]
    accelerators = np.flatnonzero(hosts if hosts.all() else ~hosts)
    seconds = problem.time()[cluster.type_of[accelerators[0]]]
    work = np.where(np.isfinite(seconds), seconds, 0.0)
    where = np.array(_parts(len(accelerators), n, work, graph.output_bytes(), graph.source, graph.target))
    colocated = graph.colocation
    heads = {c: v for v, c in reversed(list(enumerate(colocated.tolist())))}
    leader = np.array([v if c < 0 else heads[c] for v, c in enumerate(colocated.tolist())])
    where = where[leader]
    if problem.objective == "step":
        rank = np.empty(n)
        rank[graph.topological_order()] = np.arange(n)
        plan: Any = earliest(problem, accelerators[where], rank.tolist())
    else:
        if problem.variant == "contiguous":
            where = _in_order(where, leader, *precedence(graph))
        stage = np.unique(where, return_inverse=True)[1].astype(np.int32)
        plan = PartitionPlan(graph.names, accelerators[where].astype(np.int32), stage)
    if verify(problem, plan).ok:
        run.offer(plan, "metis")
    else:
        run.note("metis: the partition is not feasible")


solve.objectives = ("throughput", "step")  # type: ignore[attr-defined]


def _parts(k: int, n: int, work: np.ndarray, size: np.ndarray, source: IntArray, target: IntArray) -> list[int]:
    """Return the part of each op; an edge weighs its bytes, each pair of ops once."""
    weight: dict[tuple[int, int], float] = {}
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        for pair in ((u, v), (v, u)):
            weight[pair] = weight.get(pair, 0.0) + float(size[u])
    pairs = sorted(weight)
    first = np.searchsorted([u for u, _ in pairs], np.arange(n + 1)).tolist()
    byte, second = max(weight.values(), default=1.0) or 1.0, float(work.sum()) or 1.0
    found = pymetis.part_graph(
        k,
        pymetis.CSRAdjacency(first, [v for _, v in pairs]),
        vweights=np.rint(work / second * _UNITS).astype(int).tolist(),
        eweights=[1 + int(weight[pair] / byte * _UNITS) for pair in pairs],
    )
    return list(found[1])


def _in_order(where: IntArray, leader: IntArray, earlier: IntArray, later: IntArray) -> IntArray:
    """Return parts by the mean place of their ops in the graph, every op moved on behind those before it."""
    n, parts = len(where), int(where.max()) + 1
    place = _pushed(np.zeros(n, dtype=np.int32), leader, earlier, later, 1, n)
    mean = [place[where == part].mean() if (where == part).any() else n for part in range(parts)]
    return _pushed(np.argsort(np.argsort(mean))[where].astype(np.int32), leader, earlier, later, 0, parts)


def _pushed(place: IntArray, leader: IntArray, earlier: IntArray, later: IntArray, apart: int, most: int) -> IntArray:
    """Raise places, to less than `most`, until later ones are as far apart and ops that go together are at one."""
    while True:
        raised = place.copy()
        np.maximum.at(raised, later, np.minimum(place[earlier] + apart, most - 1))
        np.maximum.at(raised, leader, raised)
        raised = raised[leader]
        if (raised == place).all():
            return place
        place = raised
