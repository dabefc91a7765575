"""The plans that many people would write by hand, and what it costs to cut a model elsewhere than a plan does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from gangplan.instances import PartitionPlan, PartitionProblem, Plan, Problem, verify
from gangplan.instances.arrays import FloatArray
from gangplan.instances.quantities import quantity
from gangplan.instances.torch_model.ops import Ops, passed_bytes, stacks


@dataclass(frozen=True, slots=True)
class EqualPlan:
    """A plan by hand with equal `by`; its objective is None if it breaks a limit, the `problem`."""

    by: str
    stage: list[int]
    objective: float | None
    problem: str


def equal_layers(ops: Ops, devices: int) -> list[int]:
    """Return the stage of each op if `devices` stages get equally many of the model's repeated blocks.

    What comes before the first block is on the first stage, what comes after the last on the last one.
    """
    found = levels(ops)
    return _equal(next((layer for layer in found if max(layer) + 1 >= devices), found[-1]), devices)


def rivals(problem: Problem, plan: Plan, ops: Ops) -> list[EqualPlan]:
    """Return the best plan by hand with equal blocks, parameters and seconds, the best of all first.

    Args:
        problem: for throughput, contiguous; for all others there is nothing to compare with.
        plan: an answer; the others use as many devices of the cluster as there are.
        ops: of the model.
    """
    if not isinstance(problem, PartitionProblem) or not isinstance(plan, PartitionPlan):
        return []
    if problem.variant != "contiguous":
        return []
    n, devices = len(ops.ops), problem.cluster.n_devices
    seconds, size = problem.time()[0], problem.graph.parameter_bytes
    seconds = seconds[:n] + (seconds[n:][::-1] if len(seconds) > n else 0.0)
    blocks = levels(ops)
    places = [*blocks, units(problem.graph.colocation[:n].tolist())]
    stages = {
        "blocks": [_equal(layer, devices) for layer in blocks],
        "parameters": [_balanced(size[:n], unit, devices) for unit in places],
        "time": [_balanced(seconds, unit, devices) for unit in places],
    }
    found = []
    for by, choices in stages.items():
        tried = [_tried(problem, plan, by, stage) for stage in choices]
        found.append(min(tried, key=lambda x: (x.objective is None, x.objective)))
    return sorted(found, key=lambda x: (x.objective is None, x.objective or 0.0))


def units(colocation: Sequence[int]) -> list[int]:
    """Return the unit of each op, from 0 in their order: the shortest stretches that no class reaches beyond."""
    last = {label: i for i, label in enumerate(colocation) if label >= 0}
    unit, reach, here = [], -1, -1
    for i, label in enumerate(colocation):
        here += i > reach
        reach = max(reach, i, last.get(label, i))
        unit.append(here)
    return unit


def levels(ops: Ops) -> list[list[int]]:
    """Return the index of each op's block, for the blocks of each depth, the outermost first.

    Blocks are the members of `ModuleList` and `Sequential` that are alike in size and hold half of the ops.
    Ops between two blocks belong to the one before. A model without any has its ops for blocks.
    """
    where, found = stacks(ops), []
    for depth in count():
        block = [_numbered(stack, depth) for stack in where]
        if not any(block):
            break
        size = Counter(name for name in block if name)
        lists: dict[str, list[int]] = {}
        for name, ops_in in size.items():
            lists.setdefault(name.rpartition(".")[0], []).append(ops_in)
        mean = {name: sum(sizes) / len(sizes) for name, sizes in lists.items()}
        kept = [x for x in size if 2 * mean[x.rpartition(".")[0]] >= max(mean.values())]
        if 2 * sum(size[x] for x in kept) < len(where) or len(kept) < 2:
            continue
        index = {name: i for i, name in enumerate(kept)}
        layer, last = [], 0
        for name in block:
            last = max(last, index.get(name, 0))
            layer.append(last)
        found.append(layer)
    return found or [list(range(len(where)))]


def _numbered(stack: tuple[str, ...], depth: int) -> str:
    inside = [name for name in stack if name.rpartition(".")[2].isdigit()]
    return inside[depth] if len(inside) > depth else ""


def _equal(layer: list[int], devices: int) -> list[int]:
    n = max(layer) + 1
    return [min(x * devices // n, devices - 1) for x in layer]


def _balanced(amount: FloatArray, unit: list[int], devices: int) -> list[int]:
    """Return the stage of each op of a cut between units whose largest stage is the least."""
    load = np.bincount(unit, weights=amount).astype(float)
    low, high = float(load.max()), float(load.sum())
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if max(_filled(load, middle)) < devices else (middle, high)
    stage = _filled(load, high)
    return [stage[x] for x in unit]


def _filled(load: FloatArray, limit: float) -> list[int]:
    """Return the stage of each unit where each stage takes what it can up to a limit."""
    stage, full, taken = [], 0, 0.0
    for x in load.tolist():
        if taken and taken + x > limit * (1 + 1e-12):
            full, taken = full + 1, 0.0
        taken += x
        stage.append(full)
    return stage


def _tried(problem: PartitionProblem, plan: PartitionPlan, by: str, stage: list[int]) -> EqualPlan:
    both = np.array([*stage, *reversed(stage)][: len(plan.ops)], dtype=np.int32)
    both = np.unique(both, return_inverse=True)[1].astype(np.int32)
    verdict = verify(problem, replace(plan, device=both, stage=both))
    return EqualPlan(by, stage, verdict.objective, verdict.violations[0] if verdict.violations else "")


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
