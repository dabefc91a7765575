"""The latency of one sample by docs/latency.md, and the least by looking at every placement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .facts import Facts


def optimum(problem: Any) -> float | None:
    """Return the least latency, `None` if there is no plan."""
    facts = Facts(problem)
    found = (_latency(facts, where) for where in facts.placements())
    return min((x for x in found if x is not None), default=None)


def value(problem: Any, plan: Any) -> float | None:
    """Return the latency of a plan, `None` if it breaks a rule."""
    facts, where = Facts(problem), plan.device.tolist()
    return _latency(facts, where) if facts.allows(where) else None


def _latency(facts: Facts, where: Sequence[int]) -> float | None:
    """Return when all is done, `None` if calls wait for one another: hosts run op by op, an accelerator one call."""
    load = facts.loads(where)
    unit = [("op", v) if facts.kinds[d].host else ("call", d) for v, d in enumerate(where)]
    took = {u: facts.time[where[u[1]]][u[1]] if u[0] == "op" else load[u[1]] for u in unit}
    inputs: dict[Any, set[Any]] = {u: set() for u in unit}
    for a, b in facts.edges:
        if unit[a] != unit[b]:
            inputs[unit[b]].add(unit[a])
    end: dict[Any, float] = {}
    while ready := [u for u in inputs if u not in end and all(x in end for x in inputs[u])]:
        for u in ready:
            end[u] = max((end[x] for x in inputs[u]), default=0.0) + took[u]
    return max(end.values()) if len(end) == len(inputs) else None
