"""A plan device by device, and a result as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, Plan, StagesPlan, StagesProblem, Verdict, dump, verify
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.quantities import quantity, scale
from gangplan.instances.schedule import ScheduleProblem
from gangplan.solvers import Result

from ..units import amount, column, counted, percent, time_unit
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
        turns=tuple(replace(turn, begin=turn.begin + before, end=turn.end + before) for turn in result.turns),
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
        "turns": [asdict(turn) for turn in result.turns],
        "left_out": dict(result.left_out),
        "versions": dict(result.versions),
        "notes": list(result.notes),
        "conflict": list(result.conflict),
    }


def as_blocks(problem: Any, result: Result, *, verbose: bool = False) -> list[Any]:
    """Return the summary and, if there is a plan, the table of its devices, or of its jobs."""
    notes = [("note", note) for note in result.notes]
    if verbose:
        notes += [("phases", ", ".join(f"{name} {quantity(x, 's', 3)}" for name, x in result.phases.items()))]
        notes += [("trace", f"{len(result.trace)} plans, the last by {result.trace[-1].by}")] if result.trace else []
    elif notes:
        notes = [("notes", f"{len(notes)} on how it came about: --verbose shows them")]
    wall = result.wall_seconds
    summary = facts(
        [
            ("status", f"{result.status} ({result.stop_reason})"),
            ("objective", amount(problem, result.objective)),
            ("bound", amount(problem, result.bound)),
            ("gap", percent(result.gap)),
            ("time", f"{quantity(wall, 's', 3)}, {quantity(result.phases['read'], 's', 3)} of it to start and read"),
            ("method", f"{result.method}, seed {result.seed}, workers {result.workers}"),
            *(("conflict", words) for words in result.conflict),
            *notes,
        ]
    )
    if result.plan is None:
        return [summary]
    return [summary, *plan_blocks(problem, result.plan, verify(problem, result.plan))]


def plan_blocks(problem: Any, plan: Any, verdict: Any) -> list[Any]:
    """Return the table of a feasible plan: of its devices, of its stages or of its jobs."""
    if isinstance(problem, ScheduleProblem):
        from . import schedules

        return schedules.plan_blocks(problem, plan, verdict)
    if isinstance(problem, PlacementProblem):
        from . import placements

        return placements.plan_blocks(problem, plan, verdict)
    return devices(problem, plan, verdict)


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
    numbers = zip(
        *(column(x[shown] / factor) for x in (verdict.load - verdict.transfer, verdict.transfer, verdict.load)),
        column(verdict.memory[shown] / small),
        strict=True,
    )
    rows = []
    for i, times in zip(shown.tolist(), numbers, strict=True):
        kind = cluster.device_types[cluster.type_of[i]]
        share = "-" if kind.memory is None else percent(verdict.memory[i] / kind.memory)
        rows.append((kind.name, *([f"{stage[i]}"] if staged else []), f"{i}", f"{ops[i]}", *times, share))
    seconds_of = (f"{name}{suffix}" for name in ("compute", "transfer", "load"))
    where = ("type", *(["stage"] if staged else []), "device", "ops")
    blocks: list[Any] = [table((*where, *seconds_of, f"memory, {size}", "full"), rows)]
    idle = cluster.n_devices - len(used)
    left_out = [
        f"{len(used) - len(shown)} less busy devices are not shown" if len(used) > len(shown) else "",
        f"{counted(idle, 'device')} idle" if idle else "",
    ]
    return blocks + (["; ".join(filter(None, left_out))] if any(left_out) else [])
