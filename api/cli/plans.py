"""`gangplan verify`, `plot` and `compare`: plans that were made before, without any solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gangplan.instances import InstanceError, Plan, StepPlan, content_hash, verify, with_objective
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.errors import in_file
from gangplan.instances.kinds import GRAPHS, objective_of
from gangplan.instances.outlet import write_whole
from gangplan.instances.partition import VARIANTS
from gangplan.instances.quantities import counted
from gangplan.instances.schedule import SchedulePlan
from gangplan.instances.verify import clock_cost

from ..units import amount, percent, words
from . import options
from .measure import Candidate, as_blocks, measure
from .output import Told, tell
from .report import plan_blocks

LISTS = ("load", "transfer", "memory", "finish", "gpus")
"""What verdicts have for each device, job or node."""


def verify_plan(
    instance: options.Problem,
    plan: options.Plan,
    given: options.Given,
    bound: Annotated[str | None, "check this certificate of a bound too, see `solve --certificate`", "FILE"] = None,
) -> Told:
    """Check PLAN against every constraint of PROBLEM and recompute its objective.

    Give the options that the problem was solved with. Exit code: 0 if the plan is feasible, 1 if not, 2 for bad input.
    """
    problem, answer = options.answered(instance, plan, given)
    verdict = verify(problem, answer)
    with in_file(bound):
        proved = None if bound is None else float(verify_bound(problem, options.read_certificate(bound)))
    notes = [f"the plan {note}" for note in options.foreign(answer, content_hash(problem))]
    kind = f", {words(problem)}" if problem.objective in GRAPHS else ""
    lines = [f"note: {note}" for note in notes]
    if verdict.ok:
        lines.append(f"feasible{kind}: objective {amount(problem, verdict.objective)}")
        if proved is not None:
            lines.append(_standing(problem, verdict.objective, proved))
        blocks = plan_blocks(problem, answer, verdict)
    else:
        lines += [f"infeasible{kind}: {counted(len(verdict.violations), 'violation')}", *verdict.violations]
        blocks = []
    found = as_found(problem, verdict) | ({} if proved is None else {"bound": proved if isfinite(proved) else None})
    return tell(found | {"notes": notes}, "\n".join(lines), *blocks, code=0 if verdict.ok else 1)


def as_found(problem: Any, verdict: Any) -> dict[str, Any]:
    """Return what the verifier says, for JSON."""
    found = {"feasible": verdict.ok, "objective": verdict.objective, "violations": list(verdict.violations)}
    found |= {name: _numbers(getattr(verdict, name)) for name in LISTS if hasattr(verdict, name)}
    if problem.objective == "placement":
        found["slowdown"] = None if verdict.rates is None else _numbers(verdict.rates.slowdown)
    return found


def _standing(problem: Any, objective: float, bound: float) -> str:
    """Return in words how far a plan is from a checked bound."""
    zero = clock_cost(problem)
    if certifies(bound, objective, zero):
        return "bound checked: OPTIMAL (certified)"
    gap = (objective - bound) / (objective - min(zero, bound))
    return f"bound checked: {amount(problem, bound)}, gap {percent(gap)}"


def _numbers(array: Any) -> list[float | None]:
    return [x if isfinite(x) else None for x in np.asarray(array).tolist()]


PROVED = {"status", "objective", "bound", "gap"}
"""What a result claims of its problem."""
OWN = {
    "throughput": {"variant"},
    "step": {"contention"},
    "stages": {"activations", "recompute", "stashing", "memory_model", "degrees"},
}
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
        _draw(plot, panel, instance, found, rows)
    code = 0 if all(row["feasible"] for row in rows) else 1
    return tell({"instance": instance, "plans": rows}, *as_blocks(found, rows), code=code)


def _candidates(paths: list[str], instance: str, given: options.Given) -> Iterator[Candidate]:
    """Yield each plan with the problem that it is for: the one it names, as far as the options leave a choice."""
    read = [options.read_result(path, Plan | SchedulePlan) for path in paths]
    objectives = [str(given.objective or objective_of(plan)) for plan, _ in read]
    for objective, names in OWN.items():
        for name in sorted(names):
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
        label = stem if stems.count(stem) == 1 else path
        yield Candidate(path, label, known[key], key, plan, own, tuple(notes))


def _choices(instance: str, objective: str, given: options.Given) -> dict[str, Any]:
    """Return the problems by their content hash that plans for `objective` may be for, the file's own first."""
    foreign = {name for other, names in OWN.items() if other != objective for name in names}
    own = replace(given, objective=objective if objective in GRAPHS else given.objective, **dict.fromkeys(foreign))
    problem = options.problem(instance, own)
    found = [problem]
    if objective == "step" and given.contention is None:
        found += [with_objective(problem, objective, contention=x) for x in (False, True)]
    if objective == "throughput" and given.variant is None:
        found += [with_objective(problem, objective, variant=x) for x in VARIANTS]
    return {content_hash(x): x for x in found}


def _draw(
    path: str, panel: str | None, instance: str, found: Sequence[Candidate], rows: Sequence[dict[str, Any]]
) -> None:
    from ..plot import Drawn, render

    entries = []
    for i, (c, row) in enumerate(zip(found, rows, strict=True), 1):
        if row["feasible"]:
            entries.append(Drawn(c.problem, c.plan, f"{i}: {c.label}", bound=row["bound"]))
        else:
            typer.echo(f"note: {c.label} is infeasible and not drawn", err=True)
    if entries:
        write_whole({path: render(path, entries, None, name=Path(instance).stem, panel=panel)})
    else:
        typer.echo(f"note: there is no feasible plan, {path} is not written", err=True)


def plot_plan(
    instance: options.Problem,
    plan: options.Plan,
    out: Annotated[str, "a .png, .svg or .html file", "PICTURE", options.DRAWN],
    given: options.Given,
    panel: options.Panel = None,
) -> None:
    """Draw PLAN, which answers PROBLEM, into PICTURE.

    Give the options that the problem was solved with. `solve`, `compare` and `simulate` draw with --plot.
    """
    from ..plot import check_panel, render

    problem, answer = options.answered(instance, plan, given)
    check_panel(panel, type(problem))
    try:
        content = render(out, problem, answer, name=Path(instance).stem, panel=panel)
    except InstanceError as error:
        raise error.of(plan) from None
    except ValueError as error:  # it breaks a constraint
        raise InstanceError("plan", str(error), plan) from None
    write_whole({out: content})
    for note in options.foreign(answer, content_hash(problem)):
        typer.echo(f"note: the plan {note}", err=True)
