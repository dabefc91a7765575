"""A plan device by device, and a result as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, Plan, StagesPlan, StagesProblem, Verdict, dump, verify
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import ScheduleProblem
from gangplan.solvers import Result

from ..units import percent, quantity, scale, time_unit
from .output import facts, table

ROWS = 64
"""Devices shown; of more, the busiest."""


def from_start(result: Result, before: float) -> Result:
    """Return `result` with its clock set `before` seconds back: to the start of the command."""
    return replace(
        result,
        wall_seconds=result.wall_seconds + before,
        phases={"read": before, **result.phases},
        trace=tuple(replace(entry, seconds=entry.seconds + before) for entry in result.trace),
    )


def as_data(result: Result) -> dict[str, Any]:
    """Return the result as JSON-ready data; what is not known is None."""
    return {
        "status": str(result.status),
        "stop_reason": result.stop_reason,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "wall_seconds": result.wall_seconds,
        "method": result.method,
        "seed": result.seed,
        "workers": result.workers,
        "plan": None if result.plan is None else json.loads(dump(result.plan)),
        "phases": dict(result.phases),
        "trace": [asdict(entry) for entry in result.trace],
        "versions": dict(result.versions),
        "notes": list(result.notes),
        "conflict": list(result.conflict),
    }


def as_blocks(problem: Any, result: Result) -> list[Any]:
    """Return the summary and, if there is a plan, the table of its devices, or of its jobs."""
    summary = facts(
        [
            ("status", f"{result.status} ({result.stop_reason})"),
            ("objective", amount(problem, result.objective)),
            ("bound", amount(problem, result.bound)),
            ("gap", percent(result.gap)),
            ("wall", f"{result.wall_seconds:.3f} s, {result.phases['read']:.3f} s of it to start and read"),
            ("method", f"{result.method}, seed {result.seed}, workers {result.workers}"),
            *(("conflict", words) for words in result.conflict),
            *(("note", note) for note in result.notes),
        ]
    )
    if result.plan is None:
        return [summary]
    if isinstance(problem, ScheduleProblem):
        from . import schedules

        plan: Any = result.plan
        return [summary, *schedules.plan_blocks(problem, plan, verify(problem, plan))]
    if isinstance(problem, PlacementProblem):
        from .placements import plan_blocks

        answer: Any = result.plan
        return [summary, *plan_blocks(problem, answer, verify(problem, answer))]
    return [summary, *devices(problem, result.plan, verify(problem, result.plan))]


_GOALS = {
    "slowdown": "weighted slowdowns in sum",
    "throughput": "of weighted throughput lost",
    "communication": "weighted seconds, to send a gigabyte between each pair of a gang's GPUs",
    "fragmentation": "GPUs that tasks to come cannot use",
}


def amount(problem: GraphProblem | PlacementProblem | ScheduleProblem, value: float | None) -> str:
    """Return an objective in words."""
    if value is None:
        return "-"
    if isinstance(problem, ScheduleProblem):
        from .schedules import WORDS

        return f"{value:.9g} {WORDS[problem.goal]}"
    if isinstance(problem, PlacementProblem):
        return f"{value:.6g} {_GOALS[problem.goal]}"
    unit = time_unit(problem)
    per = {"throughput": " per sample", "stages": " per sample"}.get(problem.objective, "")
    return f"{quantity(value, unit, 6)}{per}{'' if unit else ', in the unit of the file'}"


def devices(problem: GraphProblem, plan: Plan, verdict: Verdict) -> list[Any]:
    """Return the table of the devices in the order of their stages, and a line on those it leaves out."""
    if isinstance(problem, StagesProblem) and isinstance(plan, StagesPlan):
        from .stages import stages_table

        return stages_table(problem, plan, verdict)
    assert not isinstance(plan, StagesPlan), "the verifier has matched plan and problem"
    cluster, unit = problem.cluster, time_unit(problem)
    ops = np.bincount(plan.device, minlength=cluster.n_devices)
    stage = np.full(cluster.n_devices, -1)
    staged = isinstance(plan, PartitionPlan)
    stage[plan.device] = plan.stage if isinstance(plan, PartitionPlan) else plan.device
    used = np.flatnonzero(ops)
    shown = used[np.argsort(-verdict.load[used], kind="stable")[:ROWS]]
    shown = shown[np.argsort(stage[shown], kind="stable")]
    factor, seconds = scale(float(verdict.load.max()), unit)
    small, size = scale(float(verdict.memory.max()), "B")
    suffix = f", {seconds}" if seconds else ""
    rows = []
    for i in shown.tolist():
        kind = cluster.device_types[cluster.type_of[i]]
        load, transfer = verdict.load[i] / factor, verdict.transfer[i] / factor
        share = "-" if kind.memory is None else f"{verdict.memory[i] / kind.memory:.1%}"
        row = (kind.name, *([f"{stage[i]}"] if staged else []), f"{i}", f"{ops[i]}")
        times = (f"{load - transfer:.4f}", f"{transfer:.4f}", f"{load:.4f}")
        rows.append((*row, *times, f"{verdict.memory[i] / small:.3f}", share))
    seconds_of = (f"{name}{suffix}" for name in ("compute", "transfer", "load"))
    where = ("type", *(["stage"] if staged else []), "device", "ops")
    blocks: list[Any] = [table((*where, *seconds_of, f"memory, {size}", "of capacity"), rows)]
    idle = cluster.n_devices - len(used)
    left_out = [
        f"{len(used) - len(shown)} less busy devices are not shown" if len(used) > len(shown) else "",
        f"{idle} {'device is' if idle == 1 else 'devices are'} idle" if idle else "",
    ]
    return blocks + (["; ".join(filter(None, left_out))] if any(left_out) else [])
