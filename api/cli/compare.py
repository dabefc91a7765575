"""`gangplan compare`: plans of one problem side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.instances import GraphProblem, InstanceError, Plan, StepPlan, content_hash, with_objective
from gangplan.instances.kinds import objective_of
from gangplan.instances.outlet import write_whole
from gangplan.instances.partition import VARIANTS
from gangplan.instances.schedule import ScheduleProblem

from . import options, schedules
from .files import check_output, foreign, read_answer, read_result
from .measure import Candidate, measure
from .output import emit_blocks, emit_json
from .side_by_side import as_blocks, as_data

PROVED = {"status", "objective", "bound", "gap"}
"""What a result claims of its instance."""
OWN = {
    "throughput": {"variant"},
    "step": {"contention"},
    "stages": {"activations", "recompute", "stashing", "memory_model", "degrees"},
}
"""Options that only problems of an objective have."""


@options.with_problem
def compare(
    plans: Annotated[
        list[str], typer.Argument(metavar="PLAN...", help="plans, or what `gangplan solve --json` printed")
    ],
    instance: Annotated[str, typer.Option(metavar="FILE", help="the problem, in any known format")],
    given: dict[str, Any],
    as_json: options.AsJson = False,
    plot: options.Picture = None,
    panel: options.Panel = None,
) -> int:
    """Set plans of one graph, or of the same jobs over time, side by side, each verified under the objective it is for.

    Give the options that the problem was solved with; a variant or contention that is not given is the one that the
    plan names. Exit code: 0 if all plans are feasible, 1 if not, 2 for bad input.
    """
    if plot is not None:
        from ..plot import check

        check_output(plot, instance, *plans)
        check(plot)
    if objective_of(read_answer(plans[0])) == "schedule":
        return _compare_schedules(instance, options.problem(instance, given), plans, as_json, plot, panel)
    found = measure(list(_candidates(plans, instance, given)))
    if plot is not None:
        from ..plot import Entry

        _draw(
            plot,
            panel,
            instance,
            [
                (m.candidate.label, m.verdict.ok, Entry(m.candidate.problem, m.candidate.plan, "", bound=m.bound))
                for m in found
            ],
        )
    if as_json:
        emit_json({"instance": instance, "plans": [as_data(m) for m in found]})
    else:
        emit_blocks(*as_blocks(found))
    return 0 if all(m.verdict.ok for m in found) else 1


def _compare_schedules(
    instance: str, problem: ScheduleProblem, plans: list[str], as_json: bool, plot: str | None, panel: str | None
) -> int:
    rows = schedules.compare_data(problem, plans)
    if plot is not None:
        from ..plot import Scheduled

        named = [(Path(path).stem, row["feasible"], read_answer(path)) for path, row in zip(plans, rows, strict=True)]
        _draw(plot, panel, instance, [(stem, ok, Scheduled(problem, plan)) for stem, ok, plan in named])
    if as_json:
        emit_json({"instance": instance, "plans": rows})
    else:
        emit_blocks(*schedules.compare_blocks(rows))
    return 0 if all(row["feasible"] for row in rows) else 1


def _candidates(paths: list[str], instance: str, given: dict[str, Any]) -> Iterator[Candidate]:
    """Yield each plan with the problem that it is for: the one it names, as far as the options leave a choice."""
    read = [read_result(path) for path in paths]
    objectives = [_objective(plan, given) for plan, _ in read]
    for objective, names in OWN.items():
        for name in sorted(names):
            if given[name] is not None and objective not in objectives:
                raise InstanceError(name, f"{given[name]!r} applies to no plan: none is for {objective}")
    choices = {x: _choices(instance, x, given) for x in dict.fromkeys(objectives)}
    stems = [Path(path).stem for path in paths]
    for path, stem, objective, (plan, claims) in zip(paths, stems, objectives, read, strict=True):
        known = choices[objective]
        key = next(iter(known))
        if isinstance(plan, StepPlan) and len(plan.sent):
            key = next((k for k, choice in known.items() if getattr(choice, "contention", False)), key)
        if plan.instance in known:
            key = plan.instance
        notes = foreign(plan, key)
        # what was proved of another instance says nothing of this one
        own = {name: claim for name, claim in claims.items() if not (notes and name in PROVED)}
        label = stem if stems.count(stem) == 1 else path
        yield Candidate(path, label, known[key], key, plan, own, tuple(notes))


def _objective(plan: Plan, given: dict[str, Any]) -> str:
    return str(given["objective"] or objective_of(plan))


def _choices(instance: str, objective: str, given: dict[str, Any]) -> dict[str, GraphProblem]:
    """Return the problems by their content hash that plans for `objective` may be for, the file's own first."""
    foreign = {name for other, names in OWN.items() if other != objective for name in names}
    own = {name: None if name in foreign else value for name, value in given.items()}
    problem = options.problem(instance, {**own, "objective": objective})
    found = [problem]
    if objective == "step" and given["contention"] is None:
        found += [with_objective(problem, objective, contention=x) for x in (False, True)]
    if objective == "throughput" and given["variant"] is None:
        found += [with_objective(problem, objective, variant=x) for x in VARIANTS]
    return {content_hash(x): x for x in found}


def _draw(path: str, panel: str | None, instance: str, found: list[tuple[str, bool, Any]]) -> None:
    """Write a picture of the plans that are feasible: label, whether it is, and the entry of each."""
    for label, ok, _ in found:
        if not ok:
            typer.echo(f"note: {label} is infeasible and not drawn", err=True)
    if not any(ok for _, ok, _ in found):
        typer.echo(f"note: there is no feasible plan, {path} is not written", err=True)
        return
    from ..plot import render_gantt

    entries = [replace(entry, name=f"{i}: {label}") for i, (label, ok, entry) in enumerate(found, 1) if ok]
    write_whole({path: render_gantt(path, entries, name=Path(instance).stem, panel=panel)})
