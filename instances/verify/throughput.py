"""The verifier of throughput plans: the load of every device, and the chain of stages."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from ..graph import topological_order
from ..partition import PartitionPlan, PartitionProblem, precedence
from .verdict import Verdict, assignment, shape, transfers


def verify_throughput(problem: PartitionProblem, plan: PartitionPlan) -> Verdict:
    """Check `plan` against every constraint of `problem` and recompute the maximum load.

    Load of an accelerator = compute of its ops + the transfer time of every output that crosses its
    boundary, once in or once out; load of a host = compute only (Tarnawski et al., NeurIPS 2020, section 3).
    """
    wrong = shape(problem, plan.ops, plan.device)
    if wrong:
        return Verdict.nothing(wrong, problem.cluster.n_devices)
    device = plan.device
    words, compute, memory = assignment(problem, device)
    transfer = transfers(problem, device)
    violations = (
        *words,
        *_stages(plan),
        *(_contiguous(problem, plan) if problem.variant == "contiguous" else ()),
        *(_convex(problem, device) if problem.variant == "convex" else ()),
    )
    load = compute + transfer
    return Verdict(violations, None if violations else float(load.max()), load, transfer, memory)


def _stages(plan: PartitionPlan) -> list[str]:
    most = max(int(plan.device.max()), int(plan.stage.max())) + 1
    if most <= 4 * len(plan.device) + 1024:
        first = np.zeros((2, most), dtype=np.int32)
        first[0, plan.device], first[1, plan.stage] = plan.stage, plan.device
        if (first[0, plan.device] == plan.stage).all() and (first[1, plan.stage] == plan.device).all():
            return []
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
        for a, b in np.stack([earlier, later])[:, stage[earlier] > stage[later]].T.tolist()
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
