"""`gangplan verify`: what a plan is worth, without any solver."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from gangplan.instances import content_hash
from gangplan.instances import verify as check
from gangplan.instances.kinds import GRAPHS

from ..units import amount, words
from . import options
from .options import foreign, read_answer
from .output import emit_blocks, emit_json

LISTS = ("load", "transfer", "memory", "finish", "gpus")
"""What verdicts have for each device, job or node."""


@options.with_problem
def verify(
    instance: options.Problem,
    plan: options.Plan,
    given: dict[str, Any],
    as_json: options.AsJson = False,
) -> int:
    """Check PLAN against every constraint of PROBLEM and recompute its objective.

    Give the options that the problem was solved with. Exit code: 0 if the plan is feasible, 1 if not, 2 for bad input.
    """
    answer = read_answer(plan)
    problem = options.problem_for(answer, instance, given)
    verdict = check(problem, answer)
    notes = [f"the plan {note}" for note in foreign(answer, content_hash(problem))]
    if as_json:
        found = {"feasible": verdict.ok, "objective": verdict.objective, "violations": list(verdict.violations)}
        found |= {name: _numbers(getattr(verdict, name)) for name in LISTS if hasattr(verdict, name)}
        if problem.objective == "placement":
            found["slowdown"] = None if verdict.rates is None else _numbers(verdict.rates.slowdown)
        emit_json({**found, "notes": notes})
        return 0 if verdict.ok else 1
    kind = f", {words(problem)}" if problem.objective in GRAPHS else ""
    lines = [f"note: {note}" for note in notes]
    if verdict.ok:
        from .report import plan_blocks

        lines.append(f"feasible{kind}: objective {amount(problem, verdict.objective)}")
        emit_blocks("\n".join(lines), *plan_blocks(problem, answer, verdict))
        return 0
    count = len(verdict.violations)
    lines += [f"infeasible{kind}: {count} violation{'s' if count > 1 else ''}", *verdict.violations]
    emit_blocks("\n".join(lines))
    return 1


def _numbers(array: Any) -> list[float | None]:
    return [x if isfinite(x) else None for x in np.asarray(array).tolist()]
