"""The verifier of latency plans: calls and host ops, each as early as its inputs allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..errors import InstanceError
from ..graph import topological_order
from ..partition import LatencyPlan, LatencyProblem
from .verdict import Verdict, assignment, shape, transfers


def verify_latency(problem: LatencyProblem, plan: LatencyPlan) -> Verdict:
    """Check `plan` and recompute when its last call or host op ends (Tarnawski et al., NeurIPS 2020, section 4)."""
    wrong = shape(problem, plan.ops, plan.device)
    if wrong:
        return Verdict.nothing(wrong, problem.cluster.n_devices)
    words, compute, memory = assignment(problem, plan.device)
    transfer = transfers(problem, plan.device)
    load = compute + transfer
    if not words:
        try:
            calls = timetable(problem, plan.device, load)
        except InstanceError as error:
            words = [f"contiguous: {error.problem}"]
    objective = None if words else float(calls.finish.max())
    return Verdict(tuple(words), objective, load, transfer, memory)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls of accelerators and single ops of hosts, `units` of them.

    Attributes:
        unit: int32 (n,), the unit of each op.
        device: int32 (units,).
        start, finish: seconds, float64 (units,).
    """

    unit: IntArray
    device: IntArray
    start: FloatArray
    finish: FloatArray


def timetable(problem: LatencyProblem, device: IntArray, load: FloatArray) -> Calls:
    """Return when each call and host op runs, given each device's seconds of compute and transfers.

    Raises:
        InstanceError: if calls wait for one another in a circle; it names one.
    """
    graph, k = problem.graph, problem.cluster.n_devices
    host = problem.hosts()[device]
    label = np.where(host, k + np.arange(graph.n_ops), device)
    present, unit = np.unique(label, return_inverse=True)
    own = problem.time()[problem.cluster.type_of[device], np.arange(graph.n_ops)]
    on_host = present >= k
    seconds = np.where(on_host, own[np.maximum(present - k, 0)], load[np.minimum(present, k - 1)])
    names = tuple(
        f"op {graph.names[x - k]} on the host" if x >= k else f"the call on device {x}" for x in present.tolist()
    )
    a, b = unit[graph.source], unit[graph.target]
    pairs = np.unique(np.stack([a[a != b], b[a != b]]), axis=1)
    order = topological_order(len(present), pairs[0], pairs[1], names)
    inputs: list[list[int]] = [[] for _ in names]
    for u, v in pairs.T.tolist():
        inputs[v].append(u)
    start, finish = np.zeros(len(names)), np.zeros(len(names))
    for v in order.tolist():
        start[v] = max((finish[u] for u in inputs[v]), default=0.0)
        finish[v] = start[v] + seconds[v]
    where = np.where(on_host, device[np.maximum(present - k, 0)], present)
    return Calls(unit.astype(np.int32), where.astype(np.int32), start, finish)
