"""`gangplan verify`: what a plan is worth, without any solver."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Annotated, Any

import typer

from gangplan.instances import StepPlan, content_hash
from gangplan.instances import verify as check
from gangplan.instances.kinds import objective_of
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import ScheduleProblem

from ..units import words
from . import options, schedules
from .files import foreign, read_answer
from .output import emit_blocks, emit_json
from .placements import plan_blocks, read_batch
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
    answer = read_answer(plan)
    batch = read_batch(instance, given)
    if isinstance(batch, ScheduleProblem):
        return _verify_schedule(batch, answer, as_json)
    if batch is not None:
        return _verify_batch(batch, answer, as_json)
    if given["objective"] is None:
        given["objective"] = objective_of(answer)
    if given["contention"] is None and isinstance(answer, StepPlan) and len(answer.sent):
        given["contention"] = True
    problem = options.problem(instance, given)
    verdict = check(problem, answer)
    notes = _notes(problem, answer)
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


def _notes(problem: Any, plan: Any) -> list[str]:
    return [f"the plan {note}" for note in foreign(plan, content_hash(problem))]


def _verify_batch(problem: PlacementProblem, plan: Any, as_json: bool) -> int:
    verdict = check(problem, plan)
    rates = verdict.rates
    if as_json:
        slowdown = None if rates is None else [x if isfinite(x) else None for x in rates.slowdown.tolist()]
        found = {"feasible": verdict.ok, "objective": verdict.objective, "violations": list(verdict.violations)}
        emit_json({**found, "slowdown": slowdown, "gpus": verdict.gpus.tolist(), "notes": _notes(problem, plan)})
    else:
        _emit(problem, plan, verdict, plan_blocks)
    return 0 if verdict.ok else 1


def _verify_schedule(problem: ScheduleProblem, plan: Any, as_json: bool) -> int:
    verdict = check(problem, plan)
    if as_json:
        finish = [x if isfinite(x) else None for x in verdict.finish.tolist()]
        found = {"feasible": verdict.ok, "objective": verdict.objective, "violations": list(verdict.violations)}
        emit_json({**found, "finish": finish, "notes": _notes(problem, plan)})
    else:
        _emit(problem, plan, verdict, schedules.plan_blocks)
    return 0 if verdict.ok else 1


def _emit(problem: PlacementProblem | ScheduleProblem, plan: Any, verdict: Any, blocks: Callable[..., Any]) -> None:
    lines = [f"note: {note}" for note in _notes(problem, plan)]
    if verdict.ok:
        lines.append(f"feasible: {amount(problem, verdict.objective)}")
        emit_blocks("\n".join(lines), *blocks(problem, plan, verdict))
        return
    lines += [f"infeasible: {len(verdict.violations)} violations", *verdict.violations]
    emit_blocks("\n".join(lines))
