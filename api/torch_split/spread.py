"""Give idle devices something to do, where that costs nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, PartitionPlan, PartitionProblem, Plan, precedence, verify
from gangplan.instances.arrays import BoolArray, FloatArray

SLACK = 1e-9
"""Relative rise of the objective that is none."""
TRIES = 64
"""Places looked at in a stage."""


def spread(problem: GraphProblem, plan: Plan) -> PartitionPlan:
    """Return a plan no worse that leaves no device idle which can take over half a stage without raising the objective.

    A best plan fills the first stages and leaves the rest idle when one op alone decides the objective. Each idle
    device takes the later half of the busiest stage that can be cut, until none can be. Less memory is then
    needed on each device.
    """
    if not isinstance(problem, PartitionProblem) or not isinstance(plan, PartitionPlan):
        raise InstanceError("spread", f"does not apply to a plan for {problem.objective}")
    if problem.variant != "contiguous":
        raise InstanceError("spread", f"does not apply to the variant {problem.variant!r}, which has no stages to cut")
    verdict = verify(problem, plan)
    plan = replace(plan, stage=np.unique(plan.stage, return_inverse=True)[1].astype(np.int32))
    if verdict.objective is None:
        raise InstanceError("plan", f"is not feasible: {verdict.violations[0]}")
    limit = verdict.objective * (1 + SLACK)
    for device in sorted(set(range(problem.cluster.n_devices)) - set(plan.device.tolist())):
        found = _cut(problem, plan, device, limit)
        if found is None:
            break
        plan = found
    if len(problem.cluster.device_types) == 1:  # nothing tells the devices apart: number them along the pipeline
        plan = replace(plan, device=np.unique(plan.device)[plan.stage].astype(np.int32))
    return plan


def _cut(problem: PartitionProblem, plan: PartitionPlan, device: int, limit: float) -> PartitionPlan | None:
    """Return the plan with the later half of one stage on `device`, None if no stage can be cut."""
    busy = np.bincount(plan.stage, weights=_seconds(problem, plan))
    for stage in np.argsort(-busy, kind="stable").tolist():
        for later in _later_parts(problem, plan, stage):
            moved = replace(
                plan,
                device=np.where(later, device, plan.device).astype(np.int32),
                stage=(plan.stage + ((plan.stage > stage) | later)).astype(np.int32),
            )
            verdict = verify(problem, moved)
            if verdict.objective is not None and verdict.objective <= limit:
                return moved
    return None


def _seconds(problem: PartitionProblem, plan: PartitionPlan) -> FloatArray:
    return problem.time()[problem.cluster.type_of[plan.device], np.arange(len(plan.ops))]


def _later_parts(problem: PartitionProblem, plan: PartitionPlan, stage: int) -> list[BoolArray]:
    """Return masks of the ops behind places where a stage may be cut, the most even first.

    The places lie along a topological order of the stage's forward ops; whoever shares a class comes along.
    """
    graph, seconds = problem.graph, _seconds(problem, plan)
    earlier, later = precedence(graph)
    order = [i for i in graph.topological_order().tolist() if plan.stage[i] == stage and not graph.backward[i]]
    masks: list[tuple[float, BoolArray]] = []
    for i in range(1, len(order)):
        behind = np.zeros(graph.n_ops, dtype=bool)
        behind[order[i:]] = True
        shared = graph.colocation[behind & (graph.colocation >= 0)]
        behind |= np.isin(graph.colocation, shared) & (graph.colocation >= 0)
        # a class may hold ops on both sides of the place
        if not (behind[earlier] & ~behind[later] & (plan.stage[later] == stage)).any():
            before = (plan.stage == stage) & ~behind
            masks.append((abs(float(seconds[behind].sum() - seconds[before].sum())), behind))
    return [mask for _, mask in sorted(masks, key=lambda pair: pair[0])[:TRIES]]
