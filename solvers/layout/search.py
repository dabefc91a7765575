"""Branch over all degrees, the most promising first, and split each family exactly: the optimum, given time."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any

from ..run import Run
from .family import Family
from .prepare import PreparedLayout
from .space import Combination

_DIVES = 24
"""Combinations, the best first, of which the best families are split before all else."""
_TRIES = 6
"""Families of each of these."""
SAFE = 1 - 1e-9
"""What bounds are multiplied with: they are sums of floats in another order than the verifier's."""


def branch(run: Run, prepared: PreparedLayout) -> None:
    """Offer the best layout of all, and raise the bound to what is left."""
    space, splitter = prepared.space, prepared.splitter
    heap: list[tuple[float, int, Combination | Family]] = []
    number = count()
    for x in space.combinations():
        if run.stopped:
            return
        bound = space.bound(x)
        if bound < inf:
            heap.append((bound, next(number), x))
    heapify(heap)
    best = _dive(run, prepared, sorted(heap[:])[:_DIVES])
    while heap and not run.stopped:
        bound, _, x = heappop(heap)
        run.raise_bound(min(bound, best) * SAFE, "branch")
        if bound >= best:
            break
        if isinstance(x, Combination):
            for least, family in space.families(x, best):
                heappush(heap, (max(least, bound), next(number), family))
            continue
        split = splitter.split(x, best)
        if split.plan is not None:
            best = min(best, _offer(run, split.plan))
    else:
        if run.stopped:
            return
        if run.plan is None:
            run.prove_infeasible("branch", prepared.why())
        else:
            run.raise_bound(best * SAFE, "branch")


def _dive(run: Run, prepared: PreparedLayout, combinations: list[tuple[float, int, Any]]) -> float:
    """Return the seconds of the best layout among the most promising families of the most promising combinations."""
    best = inf if run.objective is None else run.objective
    for _, _, x in combinations:
        if run.stopped:
            break
        for least, family in sorted(prepared.space.families(x, best), key=lambda pair: pair[0])[:_TRIES]:
            if least < best and (plan := prepared.splitter.split(family, best).plan) is not None:
                best = min(best, _offer(run, plan))
    return best


def _offer(run: Run, plan: Any) -> float:
    """Offer a plan; return its seconds, infinite if it does not fit after all."""
    from gangplan.instances.verify import verify

    verdict = verify(run.problem, plan)
    if verdict.ok:
        run.offer(plan, "branch")
    return inf if verdict.objective is None else float(verdict.objective)
