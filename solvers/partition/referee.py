"""Optima of tiny problems of throughput, latency and step, by looking at every assignment of ops to devices.

Nothing is taken from the solvers, and from the problems no more than definitions: a constraint is an array operation
over all assignments.
"""

from __future__ import annotations

from itertools import permutations
from math import inf
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, LatencyProblem, PartitionProblem, StepProblem, precedence
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.partition import Links
from gangplan.instances.verify import TOLERANCE

MOST = {"throughput": 2_000_000, "latency": 500_000, "step": 200_000}
"""Assignments worth looking at, before any is left out."""


def optimum(problem: GraphProblem) -> float | None:
    """Return the least objective of any feasible plan in seconds, `None` if there is no feasible plan.

    More than `MOST` assignments are refused.
    """
    where = _assignments(problem)
    least: dict[str, Any] = {"throughput": _least_load, "latency": _least_latency, "step": _least_makespan}
    best = float(least[problem.objective](problem, where))
    return best if best < inf else None


def _assignments(problem: GraphProblem) -> IntArray:
    """Return the devices of the ops in each assignment in which ops run and fit, classes together, int32 (p, n)."""
    n, k, most = problem.graph.n_ops, problem.cluster.n_devices, MOST[problem.objective]
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


def _least_load(problem: PartitionProblem, where: IntArray) -> float:
    keeps = {"contiguous": _contiguous, "convex": _convex}.get(problem.variant)
    where = where if keeps is None else where[keeps(problem, where)]
    return float(_loads(problem, where).max(axis=1).min(initial=inf))


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


def _least_latency(problem: LatencyProblem, where: IntArray) -> float:
    return float(_latency(problem, where[_acyclic(problem, where)]).min(initial=inf))


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


_Task = tuple[float, tuple[int, ...], tuple[int, ...]]
"""Seconds, what it occupies, which tasks come before; an op that receives waits for its transfers."""


def _least_makespan(problem: StepProblem, where: IntArray) -> float:
    """Return the least of each assignment and all orders in which tasks start, each as early as is possible then.

    In the order of its starts, an optimal plan is one of them.
    """
    best = inf
    for device in where:
        best = _best_order(*_tasks(problem, device), best)
    return best


def _tasks(problem: StepProblem, device: IntArray) -> tuple[list[_Task], list[dict[int, float]]]:
    """Return the tasks of a placement, ops first, and for each the delays after the tasks before it."""
    graph, cluster = problem.graph, problem.cluster
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    before: list[dict[int, float]] = [{} for _ in range(graph.n_ops)]
    uses: list[tuple[int, ...]] = [(int(d),) for d in device]
    took = seconds.tolist()
    links, transfer = Links(cluster), dict[tuple[int, int], int]()
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        delay = float(problem.delay(np.array([u]), device[[u]], device[[v]])[0])
        if not problem.contention or delay == 0:
            before[v][u] = delay
            continue
        pair = u, int(device[v])
        if pair not in transfer:
            transfer[pair] = len(took)
            took.append(delay)
            uses.append(tuple(cluster.n_devices + x for x in links.route(int(device[u]), int(device[v]))))
            before.append({u: 0.0})
        before[v][transfer[pair]] = 0.0
    return [(took[i], uses[i], tuple(before[i])) for i in range(len(took))], before


def _best_order(tasks: list[_Task], delays: list[dict[int, float]], best: float) -> float:
    end: dict[int, float] = {}
    free: dict[int, float] = {}

    def extend(now: float, last: float) -> None:
        nonlocal best
        if len(end) == len(tasks):
            best = min(best, last)
            return
        for i, (took, uses, before) in enumerate(tasks):
            if i in end or not all(j in end for j in before):
                continue
            ready = max((end[j] + delays[i][j] for j in before), default=0.0)
            at = max([ready, *(free.get(x, 0.0) for x in uses)])
            if at < now or at + took >= best:
                continue
            kept = {x: free.get(x, 0.0) for x in uses}
            end[i] = at + took
            free.update(dict.fromkeys(uses, at + took))
            extend(at, max(last, at + took))
            del end[i]
            free.update(kept)

    extend(0.0, 0.0)
    return best
