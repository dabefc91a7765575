"""`gangplan compare`: what plans are worth beside one another, where they run ops, and how that differs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gangplan.instances import InstanceError, Plan, StagesPlan, StepPlan, content_hash, verify, with_objective
from gangplan.instances.kinds import GRAPHS, objective_of
from gangplan.instances.outlet import write_whole
from gangplan.instances.partition import VARIANTS
from gangplan.instances.quantities import quantity
from gangplan.instances.schedule import SchedulePlan
from gangplan.instances.verify import clock_cost
from gangplan.solvers.result import relative_gap
from gangplan.solvers.run import OPTIMAL_GAP

from ..units import objective_unit, percent, time_unit, utilisation, words
from . import options
from .output import Told, note, table, tell

Places = list[tuple[int, ...]]
"""The devices that run each op: one, or all that serve its stage."""
MOST = 3
"""Plans in one table."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A plan to compare: those of one `key` answer one problem; `claims` are what `solve --json` said of it."""

    path: str
    label: str
    problem: Any
    key: str
    plan: Any
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


PROVED = {"status", "objective", "bound", "gap"}
"""What a result claims of its problem."""
OWN = {"throughput": "variant", "step": "contention", "stages": "activations recompute stashing memory_model degrees"}
"""Options that only problems of an objective have."""


def compare(
    plans: Annotated[list[str], "plans, or what `gangplan solve --json` printed", "PLAN...", options.READ],
    instance: Annotated[str, "the problem, in any known format", "--problem", "FILE", options.READ],
    given: options.Given,
    plot: options.Picture = None,
    panel: options.Panel = None,
) -> Told:
    """Set plans of one graph, or of the same jobs over time, side by side, each verified under the objective it is for.

    Give the options that the problem was solved with; a variant or contention that is not given is the one that the
    plan names. Exit code: 0 if all plans are feasible, 1 if not, 2 for bad input.
    """
    found = list(_candidates(plans, instance, given))
    rows = measure(found)
    if plot is not None:
        from ..plot import Drawn, render

        drawn = list[Drawn]()
        for i, (c, row) in enumerate(zip(found, rows, strict=True), 1):
            drawn += [Drawn(c.problem, c.plan, f"{i}: {c.label}", bound=row["bound"])] * row["feasible"]
            note(*[f"{c.label} is infeasible and not drawn"] * (not row["feasible"]))
        note(*[f"there is no feasible plan, {plot} is not written"] * (not drawn))
        if drawn:
            write_whole({plot: render(plot, drawn, None, name=Path(instance).stem, panel=panel)})
    code = 0 if all(row["feasible"] for row in rows) else 1
    return tell({"instance": instance, "plans": rows}, *as_blocks(found, rows), code=code)


def _candidates(paths: list[str], instance: str, given: options.Given) -> Iterator[Candidate]:
    """Yield each plan with the problem that it is for: the one it names, as far as the options leave a choice."""
    read = [options.read_result(path, Plan | SchedulePlan) for path in paths]
    objectives = [str(given.objective or objective_of(plan)) for plan, _ in read]
    for objective, names in OWN.items():
        for name in sorted(names.split()):
            if (value := getattr(given, name)) is not None and objective not in objectives:
                raise InstanceError(name, f"{value!r} applies to no plan: none is for {objective}")
    choices = {x: _choices(instance, x, given) for x in dict.fromkeys(objectives)}
    stems = [Path(path).stem for path in paths]
    for path, stem, objective, (plan, claims) in zip(paths, stems, objectives, read, strict=True):
        known = choices[objective]
        key = next(iter(known))
        if isinstance(plan, StepPlan) and len(plan.sent):
            key = next((k for k, choice in known.items() if getattr(choice, "contention", False)), key)
        if plan.instance in known:
            key = plan.instance
        notes = options.foreign(plan, key)
        # what was proved of another problem says nothing of this one
        own = {name: claim for name, claim in claims.items() if not (notes and name in PROVED)}
        yield Candidate(path, stem if stems.count(stem) == 1 else path, known[key], key, plan, own, tuple(notes))


def _choices(instance: str, objective: str, given: options.Given) -> dict[str, Any]:
    """Return the problems by their content hash that plans for `objective` may be for, the file's own first."""
    foreign = {name for other, names in OWN.items() if other != objective for name in names.split()}
    own = replace(given, objective=objective if objective in GRAPHS else given.objective, **dict.fromkeys(foreign))
    problem = options.problem(instance, own)
    found = [problem]
    if objective == "step" and given.contention is None:
        found += [with_objective(problem, objective, contention=x) for x in (False, True)]
    if objective == "throughput" and given.variant is None:
        found += [with_objective(problem, objective, variant=x) for x in VARIANTS]
    return {content_hash(x): x for x in found}


def measure(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Verify each plan and set it beside the others.

    Returns:
        JSON-ready data of each, seconds and bytes, None where there is nothing to say: ``best`` is whether none of
        ``rivals`` others answers its problem better, ``over_best`` how far it is above the best, relative to that;
        ``bound`` the best that a file proves of its problem and no plan contradicts; see `_of_graph`, `_of_schedule`.
    """
    verdicts: list[Any] = [verify(c.problem, c.plan) for c in candidates]
    best: dict[str, float] = {}
    for c, verdict in zip(candidates, verdicts, strict=True):
        if verdict.objective is not None:
            best[c.key] = min(verdict.objective, best.get(c.key, np.inf))
    bounds: dict[str, float] = {}
    for c in candidates:
        claim = c.number("bound")
        if claim is not None and claim <= best.get(c.key, np.inf) * (1 + OPTIMAL_GAP):
            bounds[c.key] = max(claim, bounds.get(c.key, 0.0))
    found = []
    for c, verdict in zip(candidates, verdicts, strict=True):
        value, bound, least = verdict.objective, bounds.get(c.key), best.get(c.key, 0.0)
        if value is not None and bound is not None:
            bound = min(bound, value)  # within rounding of one another
        said, claim, notes = c.number("objective"), c.number("bound"), list(c.notes)
        if claim is not None and claim > best.get(c.key, np.inf) * (1 + OPTIMAL_GAP):
            notes.append(f"its bound {claim:.9g} is above the objective {least:.9g} of a feasible plan: not used")
        if value is not None and said is not None and abs(said - value) > OPTIMAL_GAP * value:
            notes.append(f"the file says objective {said:.9g}, the verifier {value:.9g}")
        data = {
            "plan": c.path,
            "label": c.label,
            "problem": c.problem.goal if isinstance(c.plan, SchedulePlan) else words(c.problem),
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
            "notes": notes,
        }
        more = _of_schedule(c, verdict) if isinstance(c.plan, SchedulePlan) else _of_graph(c, verdict, candidates[0])
        found.append(data | more)
    return found


def _of_schedule(c: Candidate, verdict: Any) -> dict[str, Any]:
    """Return the mean completion time, the last completion, jobs left out and the share of the GPUs in use."""
    data: dict[str, Any] = dict.fromkeys(("mean_jct", "makespan", "left_out", "utilisation"))
    runs = c.plan.degree >= 0
    if verdict.ok and runs.any():
        release = np.array([job.release for job in c.problem.jobs])
        data |= {"mean_jct": float((verdict.finish - release)[runs].mean())}
        data |= {"makespan": float(np.nanmax(verdict.finish))}
    if verdict.ok:
        data |= {"left_out": int((~runs).sum()), "utilisation": utilisation(c.problem, c.plan, verdict.finish)}
    return data


def _of_graph(c: Candidate, verdict: Any, first: Candidate) -> dict[str, Any]:
    """Return what devices in use have to do, what is sent between them, and where ops are.

    ``transfer`` is the sum over devices of the time that they spend with transfers, ``moved_bytes`` what is sent, once
    for each device or group that needs it; ``placed_differently`` counts ops that are not where the first plan has
    them, ``placed_differently_renamed`` those that are not even if devices of a type are renamed, at most.
    """
    problem, where = c.problem, _places(c)
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
    other = _places(first)
    if other is not None and len(other) == len(where):
        counts = _differences(problem, other, where)
        data |= dict(zip(("placed_differently", "placed_differently_renamed"), counts, strict=True))
    return data


def _places(c: Candidate) -> Places | None:
    """Return where each op runs, `None` if the plan is for other ops or other devices."""
    plan, n, d = c.plan, c.problem.graph.n_ops, c.problem.cluster.n_devices
    if len(plan.ops) != n:
        return None
    if isinstance(plan, StagesPlan):
        serving = [tuple(np.flatnonzero(plan.serves == s).tolist()) for s in range(len(plan.degree))]
        return [serving[s] for s in plan.stage.tolist()] if len(plan.serves) == d else None
    return [(x,) for x in plan.device.tolist()] if plan.device.max() < d else None


def _differences(problem: Any, first: Places, other: Places) -> tuple[int, int]:
    """Return how many ops lie elsewhere, and how many if places of one kind may swap their names, at most.

    Names are swapped greedily, the two places that share most ops first.
    """
    type_of = problem.cluster.type_of
    different = sum(a != b for a, b in zip(first, other, strict=True))
    shared = Counter(zip(first, other, strict=True))
    taken: tuple[set[tuple[int, ...]], set[tuple[int, ...]]] = (set(), set())
    kept = 0
    for (a, b), count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if sorted(type_of[list(a)]) == sorted(type_of[list(b)]) and a not in taken[0] and b not in taken[1]:
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
    return [*blocks, "\n".join(lines)]


Cell = Callable[[dict[str, Any], str], str]
"""Makes a cell of a plan's data and the unit of its times."""


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
