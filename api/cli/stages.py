"""A plan of replicated stages, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem, Verdict
from gangplan.instances.quantities import quantity, scale
from gangplan.instances.verify.stages import Nest, nesting

from ..units import column, counted, percent, time_unit
from .output import table


def stages_table(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> list[Any]:
    """Return the table of the stages, and a line on what it adds up to."""
    unit = time_unit(problem)
    nest, _ = nesting(problem, plan)
    replicas = _replicas(nest)
    factor, seconds = scale(float(verdict.load.max()), unit)
    small, size = scale(float(verdict.memory.max()), "B")
    limit = problem.cluster.device_types[problem.kind].memory
    order = problem.graph.topological_order()
    serving = [np.flatnonzero(plan.serves == s) for s in range(len(plan.degree))]
    load, sync, memory = (
        x[[devices[0] for devices in serving]] for x in (verdict.load, verdict.transfer, verdict.memory)
    )
    columns: dict[str, list[str]] = {
        "stage": [f"{s}" for s in range(len(serving))],
        "devices": [ranges(devices.tolist()) for devices in serving],
        "first op": [problem.graph.names[order[np.argmax(plan.stage[order] == s)]] for s in range(len(serving))],
        "ops": [f"{x}" for x in np.bincount(plan.stage, minlength=len(serving))],
        "replicas": [replicas[s] for s in range(len(serving))],
        "share ops": [f"{x}" for x in plan.degree.tolist()] if plan.degree.max() > 1 else [],
        f"sync, {seconds}" if seconds else "sync": column(sync / factor),
        f"load, {seconds}" if seconds else "load": column(load / factor),
        f"memory, {size}": column(memory / small),
        "full": [] if limit is None else [percent(x / limit) for x in memory],
    }
    shown = {name: cells for name, cells in columns.items() if cells}
    blocks: list[Any] = [table(tuple(shown), zip(*shown.values(), strict=True), left=3)]
    return [*blocks, "\n".join(_summary(problem, plan, verdict))]


def plan_table(plan: StagesPlan) -> Any:
    """Return the table of the stages of a plan whose problem is not at hand."""
    rows = [
        (
            f"{s}",
            ranges(np.flatnonzero(plan.serves == s).tolist()),
            plan.ops[int(np.argmax(plan.stage == s))],
            f"{(plan.stage == s).sum()}",
            f"{degree}",
        )
        for s, degree in enumerate(plan.degree.tolist())
    ]
    return table(("stage", "devices", "the first of its ops", "ops", "share ops"), rows, left=3)


def ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers in words: ``0-3, 8``."""
    values = list(numbers)
    cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(values)) if b != a + 1), len(values)]
    runs = [(values[a], values[b - 1]) for a, b in pairwise(cuts) if a < b]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs) or "none"


def _replicas(nest: Nest | int, outer: tuple[int, ...] = ()) -> dict[int, str]:
    """Return the replicas of each stage at each level, from the outside in: ``2 x 7``."""
    if isinstance(nest, int):
        return {nest: " x ".join(map(str, outer))}
    return {s: text for count, part in nest for s, text in _replicas(part, (*outer, count)).items()}


def _summary(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> list[str]:
    unit, objective = time_unit(problem), verdict.objective or 0.0
    one = float(problem.time()[problem.kind].sum())
    lines = []
    if objective > 0 and np.isfinite(one):
        lines.append(f"{one / objective:.4g} times as fast as one device, which takes {quantity(one, unit)}")
    load = float(verdict.load.max())
    if objective > load * (1 + 1e-9):
        lines.append(f"moving activations between stages takes longest: {quantity(objective, unit)} per pass")
    idle = int((plan.serves < 0).sum())
    if idle:
        lines.append(f"{counted(idle, 'device')} idle")
    return lines
