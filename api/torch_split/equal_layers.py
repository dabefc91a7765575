"""The plan that many people would write by hand: as many layers on each device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances import PartitionPlan, PartitionProblem, Plan, Problem, verify
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.pipelining import stacks


def equal_layers(ops: Ops, devices: int) -> list[int]:
    """Return the stage of each op if `devices` stages get equally many layers.

    The layers are the members of the longest `ModuleList` or `Sequential`; what comes before the first is on the first
    stage, what comes after the last on the last one. A model without either is cut by the number of its ops.
    """
    layer = _layers(ops)
    n = max(layer) + 1
    return [min(x * devices // n, devices - 1) for x in layer]


def compared(problem: Problem, plan: Plan, ops: Ops) -> tuple[list[int], float | None] | None:
    """Return the stages of the plan with equal layers and its objective, None if it breaks a limit.

    Args:
        problem: for throughput, contiguous; for all others there is nothing to compare with: None.
        plan: an answer; the other one uses as many devices of the cluster as there are.
        ops: of the model.
    """
    if not isinstance(problem, PartitionProblem) or not isinstance(plan, PartitionPlan):
        return None
    if problem.variant != "contiguous":
        return None
    stage = equal_layers(ops, problem.cluster.n_devices)
    both = np.array([*stage, *reversed(stage)][: len(plan.ops)], dtype=np.int32)
    verdict = verify(problem, replace(plan, device=both, stage=both))
    return stage, verdict.objective


def _layers(ops: Ops) -> list[int]:
    """Return the index of each op's layer, ops between two layers with the one before."""
    where = stacks(ops)
    members: dict[str, list[str]] = {}
    for stack in where:
        for module in stack:
            parent, _, child = module.rpartition(".")
            if child.isdigit():
                found = members.setdefault(parent, [])
                if module not in found:
                    found.append(module)
    if not members:
        return list(range(len(where)))
    longest = max(members.values(), key=len)
    index = {module: i for i, module in enumerate(longest)}
    layer, last = [], 0
    for stack in where:
        last = max([last, *(index[module] for module in stack if module in index)])
        layer.append(last)
    return layer
