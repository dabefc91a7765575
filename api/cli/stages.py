"""A plan of replicated stages, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem, Verdict, content_hash
from gangplan.instances.verify.nesting import Nest, nesting

from ..units import quantity, scale, time_unit
from .output import facts, table


def stages_table(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> list[Any]:
    """Return the table of the stages, and a line on what it adds up to."""
    unit = time_unit(problem)
    nest, _ = nesting(problem, plan)
    replicas = _replicas(nest)
    factor, seconds = scale(float(verdict.load.max()), unit)
    small, size = scale(float(verdict.memory.max()), "B")
    limit = problem.cluster.device_types[problem.kind].memory
    order = problem.graph.topological_order().tolist()
    rows = []
    for s, degree in enumerate(plan.degree.tolist()):
        mine = [i for i in order if plan.stage[i] == s]
        devices = np.flatnonzero(plan.serves == s)
        load, sync, memory = (float(x[devices[0]]) for x in (verdict.load, verdict.transfer, verdict.memory))
        first, last = mine[0], [i for i in mine if not problem.graph.backward[i]][-1:] or mine[-1:]
        row = (f"{s}", ranges(devices.tolist()), f"{problem.graph.names[first]} .. {problem.graph.names[last[0]]}")
        times = (f"{x / factor:.4f}" for x in (load - sync, sync, load))
        share = "-" if limit is None else f"{memory / limit:.1%}"
        rows.append((*row, f"{len(mine)}", replicas[s], f"{degree}", *times, f"{memory / small:.3f}", share))
    suffix = f", {seconds}" if seconds else ""
    names = ("stage", "devices", "first and last op", "ops", "replicas", "share ops")
    times = (f"{x}{suffix}" for x in ("compute", "sync", "load"))
    blocks: list[Any] = [table((*names, *times, f"memory, {size}", "of capacity"), rows, left=3)]
    return [*blocks, "\n".join(_summary(problem, plan, verdict))]


def plan_blocks(file: str, plan: StagesPlan) -> list[Any]:
    """Describe a plan without its problem."""
    used = int((plan.serves >= 0).sum())
    head = facts(
        [
            ("file", file),
            (
                "holds",
                f"a plan: {len(plan.ops)} ops in {len(plan.degree)} stages on {used} devices",
            ),
            ("instance", plan.instance or "not stated"),
            ("content", content_hash(plan)),
        ]
    )
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
    return [head, table(("stage", "devices", "the first of its ops", "ops", "share ops"), rows, left=3)]


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
        lines.append(f"{one / objective:.4f} times as fast as one device, which takes {quantity(one, unit)}")
    load = float(verdict.load.max())
    if objective > load * (1 + 1e-9):
        lines.append(f"moving activations between stages takes longest: {quantity(objective, unit, 6)} per sample")
    idle = int((plan.serves < 0).sum())
    if idle:
        lines.append(f"{idle} {'device is' if idle == 1 else 'devices are'} idle")
    return lines
