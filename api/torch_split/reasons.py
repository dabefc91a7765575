"""Why a plan cuts a model where it does: what passes there, and what a cut beside it would cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances import PartitionPlan, PartitionProblem, Plan, Problem, verify
from gangplan.instances.quantities import quantity
from gangplan.instances.torch_model.ops import Ops, passed_bytes

from .equal_layers import units

SHORT = 60
"""Characters of a broken limit."""


def reasons(problem: Problem, plan: Plan, ops: Ops, stage: list[int]) -> list[str]:
    """Return for each stage but the first the bytes that it is passed, and what it costs to begin it elsewhere."""
    lines = []
    for first in sorted(set(stage))[1:]:
        names = [x for (u, v), found in ops.edges.items() if stage[u] < first <= stage[v] for x in found]
        words = [f"passes {quantity(passed_bytes(ops, list(dict.fromkeys(names))), 'B')}"]
        if isinstance(problem, PartitionProblem) and isinstance(plan, PartitionPlan) and stage == sorted(stage):
            here = stage.index(first)
            words.append(f"earlier {_cost(problem, plan, stage, here - 1, here)}")
            words.append(f"later {_cost(problem, plan, stage, here, here - 1)}")
        lines.append("; ".join(words))
    return lines


def _cost(problem: PartitionProblem, plan: PartitionPlan, stage: list[int], op: int, target: int) -> str:
    """Return what it costs to move the unit of an op, with its backward twins, to another op's stage."""
    n = len(stage)
    unit = np.array(units(problem.graph.colocation[:n].tolist()))
    moved = unit == unit[op]
    if moved.sum() == stage.count(stage[op]):
        return "leaves a stage empty"
    both = np.concatenate([moved, moved[::-1]])[: len(plan.ops)]
    device, number = (np.where(both, x[target], x).astype(np.int32) for x in (plan.device, plan.stage))
    before, after = verify(problem, plan), verify(problem, replace(plan, device=device, stage=number))
    if after.objective is None or before.objective is None:
        return f"breaks a limit: {after.violations[0][:SHORT]}"
    change = after.objective / before.objective - 1
    return f"costs {change:.2%}" if change > 1e-6 else "costs nothing"  # another stage decides the objective
