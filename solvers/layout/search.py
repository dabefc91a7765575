"""Branch over all degrees, the most promising first, and split each family exactly: the optimum, given time."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from gangplan.instances.verify import verify

from ..run import Run
from .nearest import nearest
from .prepare import PreparedLayout
from .rivals import megatron_rule
from .space import Combination, Space

_DIVES = 24
"""Combinations, the best first, of which the best families are split before all else."""
_TRIES = 6
"""Families of each of these."""
_SAFE = 1 - 1e-9
"""What bounds are multiplied with: they are sums of floats in another order than the verifier's."""

Node = tuple[float, int, Any]
"""A bound, a number that tells nodes of one bound apart, and a combination or a family."""


def dive(run: Run, prepared: PreparedLayout) -> None:
    """Offer the best layout among the most promising ones."""
    _dive(run, prepared, _nodes(run, prepared.space, count())[:_DIVES])


def _nodes(run: Run, space: Space, number: count[int]) -> list[Node]:
    """Return all combinations, the most promising first."""
    found: list[Node] = []
    for x in space.combinations():
        if run.stopped:
            raise TimeoutError
        if (bound := space.bound(x)) < inf:
            found.append((bound, next(number), x))
    return sorted(found)


def branch(run: Run, prepared: PreparedLayout) -> None:
    """Offer the best layout of all, and raise the bound to what is left."""
    space, number = prepared.space, count()
    heap = _nodes(run, space, number)
    if not space.whole:
        run.note("bound withheld: only layouts of one chunk a stage are looked at, the model has many kinds of layers")
    megatron_rule(run, prepared)
    best = _dive(run, prepared, heap[:_DIVES])
    while heap and not run.stopped:
        bound, _, x = heappop(heap)
        if space.whole:
            run.raise_bound(min(bound, best) * _SAFE, "branch")
        if bound >= best:
            break
        if isinstance(x, Combination):
            for least, family in space.families(x, best):
                heappush(heap, (max(least, bound), next(number), family))
        elif (plan := prepared.splitter.split(x, best).plan) is not None:
            best = min(best, _offer(run, plan))
    if not heap and not run.stopped and space.whole:
        _end(run, best)


def _dive(run: Run, prepared: PreparedLayout, nodes: list[Node]) -> float:
    """Return the seconds of the best layout among the most promising families of the most promising combinations."""
    best = inf if run.objective is None else run.objective
    for _, _, x in nodes:
        if run.stopped:
            break
        for least, family in sorted(prepared.space.families(x, best), key=lambda pair: pair[0])[:_TRIES]:
            if least < best and (plan := prepared.splitter.split(family, best).plan) is not None:
                best = min(best, _offer(run, plan))
    return best


def _offer(run: Run, plan: Any) -> float:
    """Offer a plan; return its seconds."""
    run.offer(plan, "branch")
    found = verify(run.problem, plan).objective
    assert found is not None, "a split is within memory"
    return float(found)


def _end(run: Run, best: float) -> None:
    """Say what it means that nothing is left."""
    if run.plan is not None:
        run.raise_bound(best * _SAFE, "branch")
    else:
        found = nearest(run.problem, lambda: run.stopped)
        run.prove_infeasible("branch", found.words() if found else "")
