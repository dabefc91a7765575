"""`gangplan compare`: plans of one problem side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.instances import InstanceError, Plan, StepPlan, content_hash, with_objective
from gangplan.instances.kinds import GRAPHS, objective_of
from gangplan.instances.outlet import write_whole
from gangplan.instances.partition import VARIANTS
from gangplan.instances.schedule import SchedulePlan

from . import options
from .measure import Candidate, as_blocks, measure
from .options import check_picture, foreign, read_result
from .output import emit_either

PROVED = {"status", "objective", "bound", "gap"}
"""What a result claims of its problem."""
OWN = {
    "throughput": {"variant"},
    "step": {"contention"},
    "stages": {"activations", "recompute", "stashing", "memory_model", "degrees"},
}
"""Options that only problems of an objective have."""


@options.with_problem
def compare(
    plans: options.Plans,
    instance: Annotated[str, typer.Option("--problem", metavar="FILE", help="the problem, in any known format")],
    given: dict[str, Any],
    as_json: options.AsJson = False,
    plot: options.Picture = None,
    panel: options.Panel = None,
) -> int:
    """Set plans of one graph, or of the same jobs over time, side by side, each verified under the objective it is for.

    Give the options that the problem was solved with; a variant or contention that is not given is the one that the
    plan names. Exit code: 0 if all plans are feasible, 1 if not, 2 for bad input.
    """
    check_picture(plot, panel, None, instance, *plans)
    found = list(_candidates(plans, instance, given))
    rows = measure(found)
    if plot is not None:
        _draw(plot, panel, instance, found, rows)
    emit_either(as_json, {"instance": instance, "plans": rows}, *as_blocks(found, rows))
    return 0 if all(row["feasible"] for row in rows) else 1


def _candidates(paths: list[str], instance: str, given: dict[str, Any]) -> Iterator[Candidate]:
    """Yield each plan with the problem that it is for: the one it names, as far as the options leave a choice."""
    read = [read_result(path, Plan | SchedulePlan) for path in paths]
    objectives = [str(given["objective"] or objective_of(plan)) for plan, _ in read]
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
        # what was proved of another problem says nothing of this one
        own = {name: claim for name, claim in claims.items() if not (notes and name in PROVED)}
        label = stem if stems.count(stem) == 1 else path
        yield Candidate(path, label, known[key], key, plan, own, tuple(notes))


def _choices(instance: str, objective: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the problems by their content hash that plans for `objective` may be for, the file's own first."""
    foreign = {name for other, names in OWN.items() if other != objective for name in names}
    own = {name: None if name in foreign else value for name, value in given.items()}
    problem = options.problem(instance, {**own, "objective": objective if objective in GRAPHS else given["objective"]})
    found = [problem]
    if objective == "step" and given["contention"] is None:
        found += [with_objective(problem, objective, contention=x) for x in (False, True)]
    if objective == "throughput" and given["variant"] is None:
        found += [with_objective(problem, objective, variant=x) for x in VARIANTS]
    return {content_hash(x): x for x in found}


def _draw(
    path: str, panel: str | None, instance: str, found: Sequence[Candidate], rows: Sequence[dict[str, Any]]
) -> None:
    """Write a picture of the plans that are feasible."""
    from ..plot import Drawn, render_gantt

    entries = []
    for i, (c, row) in enumerate(zip(found, rows, strict=True), 1):
        if row["feasible"]:
            entries.append(Drawn(c.problem, c.plan, f"{i}: {c.label}", bound=row["bound"]))
        else:
            typer.echo(f"note: {c.label} is infeasible and not drawn", err=True)
    if entries:
        write_whole({path: render_gantt(path, entries, name=Path(instance).stem, panel=panel)})
    else:
        typer.echo(f"note: there is no feasible plan, {path} is not written", err=True)
