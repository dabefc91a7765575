"""What gangplan answers on one problem, against a referee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gangplan import solve
from gangplan.instances import verify
from gangplan.solvers.method import suite

from .problems import PROBLEMS, Problem

WRONG = ("values", "bounds", "statuses", "crashes")
EXACT = 1e-9
"""Up to which values agree, relative."""
GAP = 1e-6
"""Up to which a plan may be called optimal."""


@dataclass
class Tally:
    """Counts of what was compared, and words for whatever is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def fail(self, kind: str, words: str) -> None:
        """Count a discrepancy."""
        self.counts[kind] += 1
        self.wrong.append(f"{kind}: {words}")


def methods(objective: str, problem: Any) -> Iterator[str]:
    """Yield `auto` and the exact methods that solve such a problem."""
    yield "auto"
    tools = suite(objective)
    yield from (x for x, m in tools.methods.items() if m.exact and problem.variant in tools.variants_of(m))


def compare(objective: str, seed: int, tally: Tally, limit: float = 60.0) -> None:
    """Solve a problem by all methods that prove something and compare values, bounds and statuses."""
    rules: Problem = PROBLEMS[objective]
    problem = rules.draw(seed)
    best = rules.optimum(problem)
    tally.counts["instances"] += 1
    tally.counts["infeasible"] += best is None
    last = None
    for name in methods(objective, problem):
        result = solve(problem, time_limit=limit, method=name, workers=1)
        last = result.plan if last is None else last
        said = (
            f"{objective} {seed} {problem.variant} {name}: {result.status} {result.objective!r}, bound {result.bound!r}"
        )
        if not any(f"{name} left out" in note for note in result.notes):
            check(rules, problem, result, best, tally, f"{said}; the referee has {best!r}")
    for plan in rules.plans(problem, last, np.random.default_rng([seed, 19])):
        verdict, found = verify(problem, plan), rules.value(problem, plan)
        tally.counts["drawn"] += 1
        if verdict.ok != (found is not None):
            tally.fail("values", f"{objective} {seed}, a plan drawn: {verdict.violations} but {found!r}")
        elif found is not None and not rules.same(problem, verdict.objective, found):
            tally.fail("values", f"{objective} {seed}, a plan drawn: {verdict.objective!r} but {found!r}")


def check(rules: Problem, problem: Any, result: Any, best: Any, tally: Tally, said: str, bound: float = EXACT) -> None:
    """Compare one answer with the referee's; its bound may be above the optimum by a share of `bound`."""
    tally.counts["answers"] += 1
    if result.plan is not None:
        tally.counts["plans"] += 1
        found = rules.value(problem, result.plan)
        if found is None or not rules.same(problem, result.objective, found):
            tally.fail("values", f"{said}; to it the plan is worth {found!r}")
        if best is None or rules.below(problem, result.objective, best, EXACT):
            tally.fail("values", f"{said}; the plan is better than that")
    if None not in (result.bound, best) and rules.below(problem, best, result.bound, bound):
        tally.fail("bounds", said)
    if result.status == "OPTIMAL":
        tally.counts["optima"] += 1
        if best is None or rules.below(problem, best, result.objective, 2 * GAP):
            tally.fail("statuses", said)
    elif result.status == "INFEASIBLE":
        tally.counts["empty"] += 1
        if best is not None:
            tally.fail("statuses", said)
    else:
        tally.counts["open"] += 1
        tally.wrong.append(f"open: {said}; {'; '.join(result.notes)}")
    if any("failed with" in note for note in result.notes):
        tally.fail("statuses", f"{said}; {'; '.join(result.notes)}")
    if any("withdrawn" in note or "refused" in note for note in result.notes):
        tally.fail("bounds", f"{said}; {'; '.join(result.notes)}")
