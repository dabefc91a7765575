"""A plan device by device, stage by stage or job by job, and a result as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, Plan, StagesPlan, StagesProblem, Verdict, dump, verify
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.quantities import counted, quantity, scale
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem, total
from gangplan.instances.verify import PlacementVerdict, ScheduleVerdict
from gangplan.instances.verify.stages import nesting
from gangplan.solvers import Result

from ..units import amount, column, percent, time_unit
from .output import facts, table, table_of

ROWS = 64
"""Devices shown, of more the busiest; or jobs, of more those that are slowed down most or start first."""


def from_start(result: Result, before: float) -> Result:
    """Return `result` with its clock set `before` seconds back: to the start of the command."""
    return replace(
        result,
        wall_seconds=result.wall_seconds + before,
        phases={"read": before, **result.phases},
        trace=tuple(replace(entry, seconds=entry.seconds + before) for entry in result.trace),
        turns=tuple(replace(turn, begin=turn.begin + before, end=turn.end + before) for turn in result.turns),
    )


_PLAIN = ("stop_reason", "objective", "bound", "gap", "wall_seconds", "method", "seed", "workers")


def as_data(result: Result) -> dict[str, Any]:
    """Return the result as JSON-ready data; what is not known is None."""
    proved = None if result.certified is None else float(result.certified)
    return {
        "status": str(result.status),
        "standing": result.standing,
        **{name: getattr(result, name) for name in _PLAIN},
        "plan": None if result.plan is None else json.loads(dump(result.plan)),
        "phases": dict(result.phases),
        "trace": [asdict(entry) for entry in result.trace],
        "turns": [asdict(turn) for turn in result.turns],
        "left_out": dict(result.left_out),
        "versions": dict(result.versions),
        "notes": list(result.notes),
        "conflict": list(result.conflict),
        **({} if proved is None else {"certified": proved if isfinite(proved) else None}),
        **({} if proved is None else {"certificate": result.certificate}),
    }


def as_blocks(problem: Any, result: Result, *, verbose: bool = False) -> list[Any]:
    """Return the summary and, if there is a plan, the table of its devices, or of its jobs."""
    notes = [("note", note) for note in result.notes]
    if verbose:
        notes += [("phases", ", ".join(f"{name} {quantity(x, 's', 3)}" for name, x in result.phases.items()))]
        notes += [("trace", f"{len(result.trace)} plans, the last by {result.trace[-1].by}")] if result.trace else []
    elif notes:
        notes = [("notes", f"{len(notes)} on how it came about: --verbose shows them")]
    wall, final = result.wall_seconds, result.stop_reason in ("proved", "claimed")
    summary = facts(
        [
            ("status", result.standing if final else f"{result.status} ({result.stop_reason})"),
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
    """Return the table of a feasible plan, of its devices, of its stages or of its jobs, and a line on the rest."""
    if isinstance(problem, ScheduleProblem):
        return _schedule(problem, plan, verdict)
    if isinstance(problem, PlacementProblem):
        return _placement(problem, plan, verdict)
    return _stages(problem, plan, verdict) if isinstance(problem, StagesProblem) else _devices(problem, plan, verdict)


def _rest(*words: str) -> list[str]:
    """Return what is not shown as one line; nothing if it is nothing."""
    line = "; ".join(filter(None, words))
    return [line] if line else []


def _devices(problem: GraphProblem, plan: Plan, verdict: Verdict) -> list[Any]:
    """Return the table of the devices in the order of their stages, and a line on those it leaves out."""
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
    kinds = [cluster.device_types[t] for t in cluster.type_of[shown].tolist()]
    times = {"compute": verdict.load - verdict.transfer, "transfer": verdict.transfer, "load": verdict.load}
    memory = verdict.memory[shown]
    columns = {
        "type": [kind.name for kind in kinds],
        "stage": [f"{x}" for x in stage[shown]] * staged,
        "device": [f"{i}" for i in shown],
        "ops": [f"{x}" for x in ops[shown]],
        **{f"{x}, {seconds}".removesuffix(", "): column(of[shown] / factor) for x, of in times.items()},
        f"memory, {size}": column(memory / small),
        "full": ["-" if y.memory is None else percent(x / y.memory) for x, y in zip(memory, kinds, strict=True)],
    }
    less, idle = len(used) - len(shown), cluster.n_devices - len(used)
    return [
        table_of(columns),
        *_rest(f"{less} less busy devices are not shown" * (less > 0), f"{counted(idle, 'device')} idle" * (idle > 0)),
    ]


def _stages(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> list[Any]:
    unit = time_unit(problem)
    nest, _ = nesting(problem, plan)
    replicas = _replicas(nest)
    factor, seconds = scale(float(verdict.load.max()), unit)
    small, size = scale(float(verdict.memory.max()), "B")
    limit = problem.cluster.device_types[problem.kind].memory
    order = problem.graph.topological_order()
    serving = [np.flatnonzero(plan.serves == s) for s in range(len(plan.degree))]
    first = [devices[0] for devices in serving]
    load, sync, memory = verdict.load[first], verdict.transfer[first], verdict.memory[first]
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
    return [table_of(columns, left=3), "\n".join(_worth(problem, plan, verdict))]


def _replicas(nest: Any, outer: tuple[int, ...] = ()) -> dict[int, str]:
    """Return the replicas of each stage at each level, from the outside in: ``2 x 7``."""
    if isinstance(nest, int):
        return {nest: " x ".join(map(str, outer))}
    return {s: text for count, part in nest for s, text in _replicas(part, (*outer, count)).items()}


def _worth(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> list[str]:
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


def stages_of(plan: StagesPlan) -> Any:
    """Return the table of the stages of a plan whose problem is not at hand."""
    rows = []
    for s, degree in enumerate(plan.degree.tolist()):
        mine, devices = plan.stage == s, ranges(np.flatnonzero(plan.serves == s).tolist())
        rows.append((f"{s}", devices, plan.ops[int(np.argmax(mine))], f"{mine.sum()}", f"{degree}"))
    return table(("stage", "devices", "the first of its ops", "ops", "share ops"), rows, left=3)


def ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers in words: ``0-3, 8``."""
    values = list(numbers)
    cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(values)) if b != a + 1), len(values)]
    runs = [(values[a], values[b - 1]) for a, b in pairwise(cuts) if a < b]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs) or "none"


def _placement(problem: PlacementProblem, plan: PlacementPlan, verdict: PlacementVerdict) -> list[Any]:
    assert verdict.rates is not None
    slowdown = verdict.rates.slowdown
    placed = np.unique(plan.job)
    shown = np.sort(placed[np.argsort(-slowdown[placed], kind="stable")[:ROWS]])
    rates = verdict.rates
    numbers = [column(1e3 * x[shown]) for x in (rates.compute, rates.sync, rates.step)] + [column(slowdown[shown])]
    rows = []
    for i, j in enumerate(shown.tolist()):
        mine = plan.job == j
        names = [problem.fleet.names[n] for n in plan.node[mine][:2].tolist()]
        more = int(mine.sum()) - len(names)
        where = ", ".join(names) + (f", {more} more" if more else "")
        job, workers = problem.jobs[j], f"{plan.workers[mine].sum()}"
        rows.append((job.name, job.model, where, workers, *(x[i] for x in numbers)))
    columns = ("job", "model", "nodes", "workers", "compute, ms", "sync, ms", "step, ms", "slowdown")
    less, out = len(placed) - len(shown), len(problem.jobs) - len(placed)
    return [
        table(columns, rows, left=3),
        *_rest(
            f"{less} less slowed jobs are not shown" * (less > 0),
            f"{out} jobs are left out" * (out > 0),
            f"{verdict.gpus.sum():g} of {problem.fleet.n_gpus} GPUs are in use",
        ),
    ]


def _schedule(problem: ScheduleProblem, plan: SchedulePlan, verdict: ScheduleVerdict) -> list[Any]:
    runs = np.flatnonzero(plan.degree >= 0)
    shown = runs[np.argsort(plan.start[runs], kind="stable")[:ROWS]]
    latest = float(np.nanmax(verdict.finish)) if len(runs) else 0.0
    factor, unit = scale(latest, "s")
    rows = []
    for j in shown.tolist():
        job = problem.jobs[j]
        nodes = plan.node[plan.job == j]
        where = ", ".join(map(str, nodes[:8].tolist())) + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
        finish = float(verdict.finish[j])
        times = column((plan.start[j] / factor, finish / factor, (finish - job.release) / factor, latest / factor))[:3]
        rows.append((job.name, where or "-", f"{job.degrees[plan.degree[j]]}", *times))
    columns = ("job", "nodes", "GPUs", *(f"{name}, {unit}" for name in ("start", "end", "JCT")))
    later, out = len(runs) - len(shown), len(problem.jobs) - len(runs)
    return [
        table(columns, rows, left=2),
        *_rest(
            f"{later} jobs that start later are not shown" * (later > 0),
            f"{out} jobs are left out" * (out > 0),
            f"GPUs are in use {percent(utilisation(problem, plan, verdict))} of the time to the last completion",
        ),
    ]


def utilisation(problem: ScheduleProblem, plan: SchedulePlan, verdict: ScheduleVerdict) -> float:
    """Return the share of the GPU-seconds from 0 to the last completion that are in use."""
    used = sum(
        problem.jobs[j].degrees[plan.degree[j]] * problem.jobs[j].durations[plan.degree[j]]
        for j in np.flatnonzero(plan.degree >= 0).tolist()
    )
    last = float(np.nanmax(verdict.finish)) if (plan.degree >= 0).any() else 0.0
    return used / (last * total(problem.capacity)) if last else 0.0
