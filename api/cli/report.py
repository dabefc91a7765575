"""A plan device by device, stage by stage or job by job, and a result as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import pairwise
from math import inf, isfinite
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, Plan, StagesPlan, StagesProblem, Verdict, dump, verify
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.quantities import counted, quantity, scale
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem
from gangplan.instances.verify import LayoutVerdict, PipelineVerdict, PlacementVerdict, ScheduleVerdict
from gangplan.instances.verify.stages import nesting
from gangplan.solvers import Result

from ..units import amount, column, in_unit, percent, time_unit, utilisation
from .output import facts, table_of

ROWS = 64
"""Devices shown, of more the busiest; or jobs, of more those that are slowed down most or start first."""
BEGINS = 6
"""Passes shown of each device of a pipeline."""


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
    certified = {} if proved is None else {"certified": proved if isfinite(proved) else None}
    return {
        "status": str(result.status),
        "standing": result.standing,
        **{name: getattr(result, name) for name in _PLAIN},
        "plan": None if result.plan is None else json.loads(dump(result.plan)),
        "phases": dict(result.phases),
        **{name: [asdict(entry) for entry in getattr(result, name)] for name in ("trace", "turns")},
        **{name: dict(getattr(result, name)) for name in ("left_out", "versions")},
        **{name: list(getattr(result, name)) for name in ("notes", "conflict")},
        **(certified and certified | {"certificate": result.certificate}),
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
            ("status", standing(result)),
            ("objective", amount(problem, result.objective)),
            ("bound", amount(problem, result.bound)),
            ("gap", percent(result.gap)),
            ("time", f"{quantity(wall, 's', 3)}, {quantity(result.phases['read'], 's', 3)} of it to start and read"),
            ("method", f"{result.method}, seed {result.seed}, workers {result.workers}"),
            *(("conflict", words) for words in result.conflict),
            *notes,
        ]
    )
    plan = result.plan
    return [summary] if plan is None else [summary, *plan_blocks(problem, plan, verify(problem, plan))]


def standing(result: Result) -> str:
    """Return status in words, with who proved it or what ended the search."""
    final = result.stop_reason in ("proved", "claimed")
    return result.standing if final else f"{result.status} ({result.stop_reason})"


def plan_blocks(problem: Any, plan: Any, verdict: Any) -> tuple[Any, ...]:
    """Return the table of a feasible plan, of its devices, of its stages or of its jobs, and a line on the rest."""
    kinds: dict[str, Any] = {"schedule": _schedule, "placement": _placement, "stages": _stages, "layout": _layout}
    kinds["pipeline"] = _pipeline
    columns, left, rest = kinds.get(problem.objective, _devices)(problem, plan, verdict)
    return table_of(columns, left), rest


Described = tuple[dict[str, list[str]], int, str]
"""Cells by the head of their column, how many columns are words, and what is not shown."""


def _devices(problem: GraphProblem, plan: Plan, verdict: Verdict) -> Described:
    """Describe the devices in the order of their stages."""
    assert not isinstance(plan, StagesPlan), "the verifier has matched plan and problem"
    cluster, staged = problem.cluster, isinstance(plan, PartitionPlan)
    ops = np.bincount(plan.device, minlength=cluster.n_devices)
    stage = np.full(cluster.n_devices, -1)
    stage[plan.device] = plan.stage if isinstance(plan, PartitionPlan) else plan.device
    used = np.flatnonzero(ops)
    shown = used[np.argsort(-verdict.load[used], kind="stable")[:ROWS]]
    shown = shown[np.argsort(stage[shown], kind="stable")]
    kinds = [cluster.device_types[t] for t in cluster.type_of[shown].tolist()]
    times = {"compute": verdict.load - verdict.transfer, "transfer": verdict.transfer, "load": verdict.load}
    memory = verdict.memory[shown]
    columns = {
        "type": [kind.name for kind in kinds],
        "stage": [f"{x}" for x in stage[shown]] * staged,
        "device": [f"{i}" for i in shown],
        "ops": [f"{x}" for x in ops[shown]],
        **in_unit({name: x[shown] for name, x in times.items()}, time_unit(problem), verdict.load.max()),
        **in_unit({"memory": memory}, "B", verdict.memory.max()),
        "full": ["-" if y.memory is None else percent(x / y.memory) for x, y in zip(memory, kinds, strict=True)],
    }
    less, idle = len(used) - len(shown), cluster.n_devices - len(used)
    rest = f"{less} less busy devices are not shown" * (less > 0), f"{counted(idle, 'device')} idle" * (idle > 0)
    return columns, 1, "; ".join(filter(None, rest))


def _pipeline(problem: PipelineProblem, plan: PipelinePlan, verdict: PipelineVerdict) -> Described:
    own = [np.flatnonzero(problem.device == d).tolist() for d in range(problem.devices)]
    limit = problem.capacity.tolist() or [inf] * problem.devices
    orders = [[problem.name(x) for x in order] for order in problem.orders(plan)]
    columns = {
        "device": [f"{d}" for d in range(problem.devices)],
        "stages": [ranges(mine) for mine in own],
        "begins with": [" ".join(order[:BEGINS]) for order in orders],
        **in_unit({"busy": verdict.load}, "s", verdict.objective or 0.0),
        "idle": [percent(1 - x / (verdict.objective or 1.0)) for x in verdict.load],
        **in_unit({"holds": verdict.memory}, problem.unit, verdict.memory.max()),
        "full": ["-" if y == inf or not y else percent(x / y) for x, y in zip(verdict.memory, limit, strict=True)],
    }
    return columns, 3, f"bubble {percent(verdict.bubble)}: the share of the devices' time in which they are idle"


def _stages(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> Described:
    replicas = _replicas(nesting(problem, plan)[0])
    order, limit = problem.graph.topological_order(), problem.cluster.device_types[problem.kind].memory
    serving = [np.flatnonzero(plan.serves == s) for s in range(len(plan.degree))]
    first = [devices[0] for devices in serving]
    memory, times = verdict.memory[first], {"sync": verdict.transfer[first], "load": verdict.load[first]}
    columns = {
        "stage": [f"{s}" for s in range(len(serving))],
        "devices": [ranges(devices.tolist()) for devices in serving],
        "first op": [problem.graph.names[order[np.argmax(plan.stage[order] == s)]] for s in range(len(serving))],
        "ops": [f"{x}" for x in np.bincount(plan.stage, minlength=len(serving))],
        "replicas": [replicas[s] for s in range(len(serving))],
        "share ops": [f"{x}" for x in plan.degree.tolist()] if plan.degree.max() > 1 else [],
        **in_unit(times, time_unit(problem), verdict.load.max()),
        **in_unit({"memory": memory}, "B", verdict.memory.max()),
        "full": [] if limit is None else [percent(x / limit) for x in memory],
    }
    return columns, 3, "\n".join(_worth(problem, plan, verdict))


SHOWN = 7
"""Stages of a layout that a table shows, the fullest and the slowest among them."""


def _layout(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> Described:
    """Describe stages in columns, what they hold, need and take in rows."""
    total, p = verdict.memory.sum(axis=0), len(plan.pool)
    waits = verdict.parts["seconds"]["bubble"]
    even = np.linspace(0, p - 1, SHOWN).round().astype(int).tolist()
    order = dict.fromkeys([0, p - 1, int(total.argmax()), int(waits.argmin()), *even])
    shown = sorted([*order][:SHOWN])
    bytes_, size = scale(float(total.max()), "B")
    per, unit = scale(float(verdict.seconds.sum(axis=0).max()), "s")
    blocks, each = plan.blocks.reshape(plan.virtual, -1).sum(axis=0), plan.context * plan.data
    limits = np.array([problem.pools[k].memory for k in plan.pool.tolist()])
    rows = {
        "GPUs": [f"{each * t} {problem.pools[k].gpu}" for k, t in zip(plan.pool, plan.tensor, strict=True)],
        "blocks": [f"{n}" for n in blocks],
        "full recomputation": [f"{n}" for n in plan.full] * bool(plan.full.any()),
        "selective recomputation": [f"{n}" for n in plan.selective] * bool(plan.selective.any()),
    }
    parts = verdict.parts["memory"] | {"all": total}
    rows |= {f"{name}, {size}": column(row / bytes_, 3) for name, row in parts.items()}
    rows |= {"full": [percent(x) for x in (total / limits).tolist()]}
    steps = verdict.parts["seconds"].items()
    rows |= {f"{name}, {unit}": column(row / per, 3) for name, row in steps if row.max() > 5e-4 * per}
    columns = {"stage": [name for name, cells in rows.items() if cells]}
    columns |= {f"{s}": [cells[s] for cells in rows.values() if cells] for s in shown}
    more = f"{counted(p - len(shown), 'stage')} not shown; --json has all" if len(shown) < p else ""
    return columns, 1, more


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
    if objective > float(verdict.load.max()) * (1 + 1e-9):
        lines.append(f"moving activations between stages takes longest: {quantity(objective, unit)} per pass")
    idle = int((plan.serves < 0).sum())
    if idle:
        lines.append(f"{counted(idle, 'device')} idle")
    return lines


def ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers in words: ``0-3, 8``."""
    values = list(numbers)
    cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(values)) if b != a + 1), len(values)]
    runs = [(values[a], values[b - 1]) for a, b in pairwise(cuts) if a < b]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs) or "none"


def _placement(problem: PlacementProblem, plan: PlacementPlan, verdict: PlacementVerdict) -> Described:
    assert verdict.rates is not None
    rates, placed = verdict.rates, np.unique(plan.job)
    shown = np.sort(placed[np.argsort(-rates.slowdown[placed], kind="stable")[:ROWS]])
    nodes = {j: [problem.fleet.names[n] for n in plan.node[plan.job == j].tolist()] for j in shown.tolist()}
    columns = {
        "job": [problem.jobs[j].name for j in nodes],
        "model": [problem.jobs[j].model for j in nodes],
        "nodes": [", ".join([*x[:2], *[f"{len(x) - 2} more"] * (len(x) > 2)]) for x in nodes.values()],
        "workers": [f"{plan.workers[plan.job == j].sum()}" for j in nodes],
        **{f"{name}, ms": column(1e3 * getattr(rates, name)[shown]) for name in ("compute", "sync", "step")},
        "slowdown": column(rates.slowdown[shown]),
    }
    less, out = len(placed) - len(shown), len(problem.jobs) - len(placed)
    rest = (
        f"{less} less slowed jobs are not shown" * (less > 0),
        f"{out} jobs are left out" * (out > 0),
        f"{verdict.gpus.sum():g} of {problem.fleet.n_gpus} GPUs are in use",
    )
    return columns, 3, "; ".join(filter(None, rest))


def _schedule(problem: ScheduleProblem, plan: SchedulePlan, verdict: ScheduleVerdict) -> Described:
    runs = np.flatnonzero(plan.degree >= 0)
    shown = runs[np.argsort(plan.start[runs], kind="stable")[:ROWS]].tolist()
    latest = float(np.nanmax(verdict.finish)) if len(runs) else 0.0
    factor, unit = scale(latest, "s")
    nodes = {j: plan.node[plan.job == j].tolist() for j in shown}
    jct = [verdict.finish[j] - problem.jobs[j].release for j in shown]
    columns = {
        "job": [problem.jobs[j].name for j in shown],
        "nodes": [", ".join(map(str, x[:8])) + f" and {len(x) - 8} more" * (len(x) > 8) or "-" for x in nodes.values()],
        "GPUs": [f"{problem.jobs[j].degrees[plan.degree[j]]}" for j in shown],
    }
    for name, of in ("start", plan.start[shown]), ("end", verdict.finish[shown]), ("JCT", jct):
        columns[f"{name}, {unit}"] = column([x / factor for x in (*of, latest)])[:-1]  # the decimals of the latest
    later, out = len(runs) - len(shown), len(problem.jobs) - len(runs)
    rest = (
        f"{later} jobs that start later are not shown" * (later > 0),
        f"{out} jobs are left out" * (out > 0),
        f"GPUs are in use {percent(utilisation(problem, plan, verdict.finish))} of the time to the last completion",
    )
    return columns, 2, "; ".join(filter(None, rest))
