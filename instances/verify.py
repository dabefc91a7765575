"""The verifier: what a plan is worth, from the instance and the plan alone. No solver is trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray, IntArray, sums
from .graph import topological_order
from .partition import PartitionPlan, PartitionProblem, precedence

TOLERANCE = 1e-9
"""Relative slack on memory, for sums of floats in another order."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the verifier found.

    Attributes:
        violations: every violated constraint in plain words; empty if the plan is feasible.
        objective: the recomputed objective in seconds, `None` if the plan is infeasible.
        load: seconds per sample each device is busy, float64 (n_devices,): compute plus transfers.
        transfer: the part of `load` spent on transfers, float64 (n_devices,).
        memory: bytes used on each device, float64 (n_devices,).
    """

    violations: tuple[str, ...]
    objective: float | None
    load: FloatArray
    transfer: FloatArray
    memory: FloatArray

    @property
    def ok(self) -> bool:
        """Whether the plan is feasible."""
        return not self.violations


def verify(problem: PartitionProblem, plan: PartitionPlan) -> Verdict:
    """Check `plan` against every constraint of `problem` and recompute the maximum load.

    Load of an accelerator = compute of its ops + the transfer time of every output that crosses its
    boundary, once in or once out; load of a host = compute only (Tarnawski et al., NeurIPS 2020, section 3).
    """
    graph, cluster = problem.graph, problem.cluster
    d = cluster.n_devices
    nothing = np.zeros(d)
    shape = _shape(problem, plan)
    if shape:
        return Verdict(tuple(shape), None, nothing, nothing, nothing)
    device = plan.device
    kind = cluster.type_of[device]
    seconds = problem.time()[kind, np.arange(graph.n_ops)]
    unsupported = [
        f"op {graph.names[i]} cannot run on device {device[i]} ({cluster.device_types[kind[i]].name})"
        for i in np.flatnonzero(~np.isfinite(seconds))
    ]
    compute = sums(device, np.where(np.isfinite(seconds), seconds, 0.0), d)
    transfer = _transfer(problem, device)
    memory = sums(device, graph.memory, d)
    violations = (
        *unsupported,
        *_memory(problem, memory),
        *_colocation(problem, device),
        *_stages(problem, plan),
        *(_contiguous(problem, plan) if problem.variant == "contiguous" else ()),
        *(_convex(problem, device) if problem.variant == "convex" else ()),
    )
    load = compute + transfer
    return Verdict(violations, None if violations else float(load.max()), load, transfer, memory)


def _shape(problem: PartitionProblem, plan: PartitionPlan) -> list[str]:
    names, d = problem.graph.names, problem.cluster.n_devices
    if len(plan.ops) != len(names):
        return [f"the plan places {len(plan.ops)} ops, the graph has {len(names)}"]
    if plan.ops != names:
        i = next(i for i, (mine, theirs) in enumerate(zip(plan.ops, names, strict=True)) if mine != theirs)
        return [f"op {i} of the plan is {plan.ops[i]}, of the graph {names[i]}"]
    return [
        f"op {names[i]} is on device {plan.device[i]}, the cluster has {d}" for i in np.flatnonzero(plan.device >= d)
    ]


def _transfer(problem: PartitionProblem, device: IntArray) -> FloatArray:
    graph, cluster = problem.graph, problem.cluster
    u, v = graph.source, graph.target
    cut = device[u] != device[v]
    # an output is received once per device that needs it and sent once, however many ask
    received = np.unique(np.stack([u[cut], device[v[cut]]]), axis=1)
    sent = np.unique(u[cut])
    cost = problem.transfer()
    seconds = sums(received[1], cost[received[0]], cluster.n_devices)
    seconds += sums(device[sent], cost[sent], cluster.n_devices)
    host = np.array([kind.host for kind in cluster.device_types])
    seconds[host[cluster.type_of]] = 0.0
    return seconds


def _memory(problem: PartitionProblem, memory: FloatArray) -> list[str]:
    capacity = np.array([np.inf if t.memory is None else t.memory for t in problem.cluster.device_types])
    limit = capacity[problem.cluster.type_of]
    return [
        f"memory: the ops on device {i} need {memory[i]:.6g} bytes, it has {limit[i]:.6g}"
        for i in np.flatnonzero(memory > limit * (1 + TOLERANCE))
    ]


def _colocation(problem: PartitionProblem, device: IntArray) -> list[str]:
    graph = problem.graph
    member = np.flatnonzero(graph.colocation >= 0)
    _, first, inverse = np.unique(graph.colocation[member], return_index=True, return_inverse=True)
    leader = member[first[inverse]]
    return [
        f"colocation: op {graph.names[i]} is on device {device[i]}, op {graph.names[j]} of its class on {device[j]}"
        for i, j in zip(member.tolist(), leader.tolist(), strict=True)
        if device[i] != device[j]
    ]


def _stages(problem: PartitionProblem, plan: PartitionPlan) -> list[str]:
    pairs = np.unique(np.stack([plan.device, plan.stage]), axis=1)
    words = []
    for row, one, many in ((0, "device", "stages"), (1, "stage", "devices")):
        value, count = np.unique(pairs[row], return_counts=True)
        for x in value[count > 1]:
            others = ", ".join(map(str, pairs[1 - row][pairs[row] == x]))
            words.append(f"{one} {x} has {many} {others}")
    return words


def _contiguous(problem: PartitionProblem, plan: PartitionPlan) -> list[str]:
    earlier, later = precedence(problem.graph)
    names, stage = problem.graph.names, plan.stage
    return [
        f"contiguous: op {names[a]} (stage {stage[a]}) comes before op {names[b]} (stage {stage[b]}) in the graph"
        for a, b in zip(earlier.tolist(), later.tolist(), strict=True)
        if stage[a] > stage[b]
    ]


def _convex(problem: PartitionProblem, device: IntArray) -> list[str]:
    """Find the ops that lie on a path which has left their own device before.

    One sweep in topological order carries, as the bits of an integer, the devices that paths to an op have left.
    """
    graph = problem.graph
    earlier, later = precedence(graph)
    where = device.tolist()
    predecessors: list[list[int]] = [[] for _ in where]
    for a, b in zip(earlier.tolist(), later.tolist(), strict=True):
        predecessors[b].append(a)
    left = [0] * graph.n_ops
    words = []
    for v in topological_order(graph.n_ops, earlier, later).tolist():
        for u in predecessors[v]:
            left[v] |= left[u] | (1 << where[u] if where[u] != where[v] else 0)
        if left[v] >> where[v] & 1:
            words.append(f"convex: a path leaves device {where[v]} and comes back to it at op {graph.names[v]}")
    return words
