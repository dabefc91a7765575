"""What plans are worth beside one another, where they run ops, and how that differs: as data, and as a table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, Plan, StagesPlan, Verdict, verify
from gangplan.instances.quantities import quantity
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem
from gangplan.instances.verify import clock_cost
from gangplan.solvers.run import OPTIMAL_GAP, relative_gap

from ..units import objective_unit, percent, time_unit, words
from .output import table
from .report import utilisation

Places = list[tuple[int, ...]]
"""The devices that run each op: one, or all that serve its stage."""
MOST = 3
"""Plans in one table."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A plan to compare: those of one `key` answer one problem; `claims` are what `solve --json` said of it."""

    path: str
    label: str
    problem: GraphProblem | ScheduleProblem
    key: str
    plan: Plan | SchedulePlan
    claims: dict[str, Any]
    notes: tuple[str, ...] = ()

    def number(self, name: str) -> float | None:
        """Return the number that the file claims as `name`, `None` if it has none."""
        claim = self.claims.get(name)
        whole = isinstance(claim, int) and not isinstance(claim, bool) and abs(claim) <= sys.float_info.max
        return float(claim) if whole or isinstance(claim, float) else None  # type: ignore[arg-type]

    def text(self, name: str) -> str | None:
        """Return the text that the file claims as `name`, `None` if it has none."""
        claim = self.claims.get(name)
        return claim if isinstance(claim, str) else None


def measure(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Verify each plan and set it beside the others.

    Returns:
        JSON-ready data of each, seconds and bytes, None where there is nothing to say: ``best`` is whether none of
        ``rivals`` others answers its problem better, ``over_best`` how far it is above the best, relative to that;
        ``bound`` the best that a file proves of its problem and no plan contradicts; see `of_graph` and `of_schedule`.
    """
    verdicts: list[Any] = [verify(c.problem, c.plan) for c in candidates]
    best: dict[str, float] = {}
    for c, verdict in zip(candidates, verdicts, strict=True):
        if verdict.objective is not None:
            best[c.key] = min(verdict.objective, best.get(c.key, np.inf))
    bounds: dict[str, float] = {}
    for c in candidates:
        claim = c.number("bound")
        if claim is not None and claim <= _above(best.get(c.key, np.inf)):
            bounds[c.key] = max(claim, bounds.get(c.key, 0.0))
    found = []
    for c, verdict in zip(candidates, verdicts, strict=True):
        value, bound, least = verdict.objective, bounds.get(c.key), best.get(c.key, 0.0)
        if value is not None and bound is not None:
            bound = min(bound, value)  # within rounding of one another
        data = {
            "plan": c.path,
            "label": c.label,
            "problem": c.problem.goal if isinstance(c.problem, ScheduleProblem) else words(c.problem),
            "feasible": verdict.ok,
            "violations": list(verdict.violations),
            "objective": value,
            "best": value is not None and value == least,
            "rivals": sum(other.key == c.key for other in candidates) - 1,
            "over_best": None if value is None else (value - least) / least if least > 0 else 0.0,
            "bound": bound,
            "gap": relative_gap(value, bound, clock_cost(c.problem)),
            **{name: c.text(name) for name in ("status", "method")},
            "wall_seconds": c.number("wall_seconds"),
            "notes": [*c.notes, *_doubts(c, value, best.get(c.key, np.inf))],
        }
        found.append(data | (of_schedule if isinstance(c.plan, SchedulePlan) else of_graph)(c, verdict, candidates[0]))
    return found


def _above(objective: float) -> float:
    """Return the highest bound that an objective does not contradict."""
    return objective * (1 + OPTIMAL_GAP)


def _doubts(c: Candidate, objective: float | None, least: float) -> list[str]:
    """Return what is wrong with what a file says; `least` is the best objective of its problem."""
    said, bound = c.number("objective"), c.number("bound")
    doubts = []
    if bound is not None and bound > _above(least):
        doubts.append(f"its bound {bound:.9g} is above the objective {least:.9g} of a feasible plan: not used")
    if objective is not None and said is not None and abs(said - objective) > OPTIMAL_GAP * objective:
        doubts.append(f"the file says objective {said:.9g}, the verifier {objective:.9g}")
    return doubts


def of_schedule(c: Candidate, verdict: Any, first: Candidate) -> dict[str, Any]:
    """Return the mean completion time, the last completion, jobs left out and the share of the GPUs in use."""
    problem: Any = c.problem
    plan: Any = c.plan
    data: dict[str, Any] = dict.fromkeys(("mean_jct", "makespan", "left_out", "utilisation"))
    if not verdict.ok:
        return data
    runs = plan.degree >= 0
    if runs.any():
        release = np.array([job.release for job in problem.jobs])
        data["mean_jct"] = float((verdict.finish - release)[runs].mean())
        data["makespan"] = float(np.nanmax(verdict.finish))
    return data | {"left_out": int((~runs).sum()), "utilisation": utilisation(problem, plan, verdict)}


def of_graph(c: Candidate, verdict: Verdict, first: Candidate) -> dict[str, Any]:
    """Return what devices in use have to do, what is sent between them, and where ops are.

    ``transfer`` is the sum over devices of the time that they spend with transfers, ``moved_bytes`` what is sent, once
    for each device or group that needs it; ``placed_differently`` counts ops that are not where the first plan has
    them, ``placed_differently_renamed`` those that are not even if devices of a type are renamed, at most.
    """
    problem: Any = c.problem
    where = places(problem, c.plan)
    data: dict[str, Any] = dict.fromkeys(("devices", "max_load", "mean_load", "transfer", "moved_bytes", "peak_memory"))
    data |= dict.fromkeys(("cuts", "placed_differently", "placed_differently_renamed"))
    if where is None:
        return data
    used = sorted({d for ops in where for d in ops})
    data |= {"devices": len(used), "devices_in_all": problem.cluster.n_devices}
    graph, size = problem.graph, problem.graph.output_bytes()
    ends = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    crossing = [(u, where[v]) for u, v in ends if where[u] != where[v]]
    data["cuts"] = len(crossing)
    if time_unit(problem):  # an output is sent once to each other place that needs it
        data["moved_bytes"] = float(sum(size[u] for u, _ in set(crossing)))
    if verdict.ok:
        load = verdict.load[used]
        data |= {"max_load": float(load.max()), "mean_load": float(load.mean())}
        data |= {"transfer": float(verdict.transfer.sum()), "peak_memory": float(verdict.memory[used].max())}
    other = places(first.problem, first.plan)
    if other is not None and len(other) == len(where):
        counts = differences(problem, other, where)
        data |= dict(zip(("placed_differently", "placed_differently_renamed"), counts, strict=True))
    return data


def places(problem: Any, plan: Any) -> Places | None:
    """Return where each op runs, `None` if the plan is for other ops or other devices."""
    n, d = problem.graph.n_ops, problem.cluster.n_devices
    if len(plan.ops) != n:
        return None
    if isinstance(plan, StagesPlan):
        serving = [tuple(np.flatnonzero(plan.serves == s).tolist()) for s in range(len(plan.degree))]
        return [serving[s] for s in plan.stage.tolist()] if len(plan.serves) == d else None
    return [(x,) for x in plan.device.tolist()] if plan.device.max() < d else None


def differences(problem: GraphProblem, first: Places, other: Places) -> tuple[int, int]:
    """Return how many ops lie elsewhere, and how many if places of one kind may swap their names, at most.

    Names are swapped greedily, the two places that share most ops first.
    """
    type_of = problem.cluster.type_of
    different = sum(a != b for a, b in zip(first, other, strict=True))
    shared = Counter(zip(first, other, strict=True))
    taken: tuple[set[tuple[int, ...]], set[tuple[int, ...]]] = (set(), set())
    kept = 0
    for (a, b), count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        alike = sorted(type_of[list(a)]) == sorted(type_of[list(b)])
        if alike and a not in taken[0] and b not in taken[1]:
            taken[0].add(a)
            taken[1].add(b)
            kept += count
    return different, min(different, len(first) - kept)


def as_blocks(candidates: Sequence[Candidate], found: Sequence[dict[str, Any]]) -> list[Any]:
    """Return tables with a column for each plan, then what is wrong with any."""
    blocks: list[Any] = []
    units = [objective_unit(c.problem) for c in candidates]
    for first in range(0, len(found), MOST):
        shown = range(first, min(first + MOST, len(found)))
        rows = [(name, *(cell(found[i], units[i]) for i in shown)) for name, cell in ROWS.items()]
        labels = [(i, candidates[i].label) for i in shown]
        heads = [f"{i + 1}: {x if len(x) <= 16 else f'...{x[-14:]}'}" for i, x in labels]
        # a row in which no plan has anything to say would say nothing
        blocks.append(table(("", *heads), [row for row in rows if set(row[1:]) != {"-"}]))
    lines = []
    for i, x in enumerate(found, 1):
        if x["violations"]:
            more = f" (and {len(x['violations']) - 1} more)" if len(x["violations"]) > 1 else ""
            lines.append(f"{i}: infeasible: {x['violations'][0]}{more}")
        lines += [f"{i}: note: {note}" for note in x["notes"]]
    if not all(units) and "devices" in found[0]:
        lines.append("times are in the unit of the file")
    return [*blocks, *(["\n".join(lines)] if lines else [])]


Cell = Callable[[dict[str, Any], str], str]


def _time(key: str, unit: str | None = None) -> Cell:
    return lambda x, own: quantity(x.get(key), own if unit is None else unit)


def _plain(key: str) -> Cell:
    return lambda x, _: "-" if x.get(key) is None else str(x[key])


def _different(x: dict[str, Any], _: str) -> str:
    count, renamed = x.get("placed_differently"), x.get("placed_differently_renamed")
    return "-" if count is None else f"{count}{f' ({renamed} renamed)' if renamed != count else ''}"


ROWS: dict[str, Cell] = {
    "problem": lambda x, _: x["problem"].replace(", ", ",\n"),
    "feasible": lambda x, _: "yes" if x["feasible"] else "no",
    "objective": lambda x, unit: f"{'best ' if x['best'] and x['rivals'] else ''}{quantity(x['objective'], unit)}",
    "above the best": lambda x, _: percent(x["over_best"]),
    "bound": _time("bound"),
    "gap": lambda x, _: percent(x["gap"]),
    "status": _plain("status"),
    "method": _plain("method"),
    "wall": _time("wall_seconds", "s"),
    "mean JCT": _time("mean_jct", "s"),
    "makespan": _time("makespan", "s"),
    "jobs left out": _plain("left_out"),
    "GPUs in use": lambda x, _: percent(x.get("utilisation")),
    "devices used": lambda x, _: f"{x['devices']} of {x['devices_in_all']}" if x.get("devices") else "-",
    "greatest load": _time("max_load"),
    "mean load": _time("mean_load"),
    "transfers, in all": _time("transfer"),
    "moved": _time("moved_bytes", "B"),
    "fullest device": _time("peak_memory", "B"),
    "edges cut": _plain("cuts"),
    "ops placed differently": _different,
}
"""The rows of the table."""
