"""Starts of solvers are rounded: start every op anew, as early as its inputs and its device allow, in their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances import StepPlan, StepProblem
from gangplan.instances.arrays import IntArray


def earliest(problem: StepProblem, device: IntArray, start: Sequence[float]) -> StepPlan:
    """Return the plan with the placement `device` and, on each device, the order of `start`."""
    graph, cluster = problem.graph, problem.cluster
    rank = np.empty(graph.n_ops, dtype=int)
    rank[graph.topological_order()] = np.arange(graph.n_ops)
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    delay = problem.delay(graph.source, device[graph.source], device[graph.target])
    inputs: list[list[tuple[int, float]]] = [[] for _ in range(graph.n_ops)]
    for u, v, wait in zip(graph.source.tolist(), graph.target.tolist(), delay.tolist(), strict=True):
        inputs[v].append((u, wait))
    at, end = np.zeros(graph.n_ops), np.zeros(graph.n_ops)
    free = np.zeros(cluster.n_devices)
    for v in sorted(range(graph.n_ops), key=lambda v: (start[v], rank[v])):
        at[v] = max([free[device[v]], *(end[u] + wait for u, wait in inputs[v])])
        end[v] = free[device[v]] = at[v] + seconds[v]
    return StepPlan(graph.names, device, at)
