"""The maximum load by docs/partition.md and docs/formulation.md, and the least by looking at every placement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from .facts import Facts, reach


def optimum(problem: Any) -> float | None:
    """Return the least maximum load, `None` if there is no plan."""
    facts = Facts(problem)
    return min((max(facts.loads(where)) for where in facts.placements() if _splits(facts, where)), default=None)


def value(problem: Any, plan: Any) -> float | None:
    """Return the maximum load of a plan, `None` if it breaks a rule."""
    facts, where, stage = Facts(problem), plan.device.tolist(), plan.stage.tolist()
    pairs = set(zip(where, stage, strict=True))
    one = len(pairs) == len(set(where)) == len(set(stage))
    if problem.variant == "contiguous":
        one = one and all(stage[a] <= stage[b] for a, b in facts.order)
    return max(facts.loads(where)) if one and facts.allows(where) and _splits(facts, where) else None


def _splits(facts: Facts, where: Sequence[int]) -> bool:
    """Return whether the split counts in the variant of the problem."""
    variant, devices, ops = facts.problem.variant, range(len(facts.kinds)), range(facts.n)
    if variant == "contiguous":
        after = reach(len(devices), [(where[a], where[b]) for a, b in facts.order if where[a] != where[b]])
        return not any(after[d][d] for d in devices)
    if variant == "convex":
        ahead = reach(facts.n, facts.order)
        back = ((a, b) for a, w, b in product(ops, repeat=3) if where[a] != where[w] and ahead[a][w] and ahead[w][b])
        return not any(where[a] == where[b] for a, b in back)
    return True
