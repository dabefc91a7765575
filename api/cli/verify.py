"""`gangplan verify`: what a plan is worth, without any solver."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gangplan.instances import StepPlan, content_hash
from gangplan.instances import verify as check
from gangplan.instances.verify import PLANS

from ..units import words
from . import options
from .files import read_plan
from .output import emit_blocks, emit_json
from .report import amount
from .report import devices as device_table


@options.with_problem
def verify(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="the problem, in any known format")],
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="the plan, or what `gangplan solve --json` printed")],
    given: dict[str, Any],
    as_json: options.AsJson = False,
) -> int:
    """Check PLAN against every constraint of INSTANCE and recompute its objective.

    Give the options that the problem was solved with. Exit code: 0 if the plan is feasible, 1 if not, 2 for bad input.
    """
    answer = read_plan(plan)
    if given["objective"] is None:
        given["objective"] = next(kind.objective for kind, answers in PLANS.items() if isinstance(answer, answers))
    if given["contention"] is None and isinstance(answer, StepPlan) and len(answer.sent):
        given["contention"] = True
    problem = options.problem(instance, given)
    verdict = check(problem, answer)
    notes = []
    own = content_hash(problem)
    if answer.instance is not None and answer.instance != own:
        notes.append(f"the plan was made for another instance: {answer.instance}, this one is {own}")
    if as_json:
        emit_json(
            {
                "feasible": verdict.ok,
                "objective": verdict.objective,
                "violations": list(verdict.violations),
                "load": verdict.load.tolist(),
                "transfer": verdict.transfer.tolist(),
                "memory": verdict.memory.tolist(),
                "notes": notes,
            }
        )
        return 0 if verdict.ok else 1
    lines = [f"note: {note}" for note in notes]
    if verdict.ok:
        lines.append(f"feasible, {words(problem)}: objective {amount(problem, verdict.objective)}")
        emit_blocks("\n".join(lines), *device_table(problem, answer, verdict))
        return 0
    count = len(verdict.violations)
    lines += [f"infeasible, {words(problem)}: {count} violation{'s' if count > 1 else ''}", *verdict.violations]
    emit_blocks("\n".join(lines))
    return 1
