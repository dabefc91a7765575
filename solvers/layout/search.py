"""Branch over all degrees, the most promising first, and split each family exactly: the optimum, given time."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import inf
from operator import itemgetter
from typing import Any

from gangplan.instances.layout.flags import again
from gangplan.instances.layout.problem import LayoutPlan

from ..run import Run
from .family import Combination, LayoutFamily
from .nearest import nearest
from .rivals import megatron_rule
from .space import Space
from .split import equal, split
from .wish import ANY

_DIVES = 24
"""Combinations, the best first, of which the best families are split before all else."""
_TRIES, _MORE = 6, 24
"""Families of each of these, and where a framework has to run the layouts, which fit less often."""
_SAFE = 1 - 1e-9
"""What bounds are multiplied with: they are sums of floats in another order than the verifier's."""

Node = tuple[float, int, Any]
"""A bound, a number that tells nodes of one bound apart, and a combination, a family, or, alone in a tuple, one whose
best layout the framework does not run."""


def dive(run: Run, space: Space) -> None:
    """Offer the best layout of the most promising families of the most promising combinations."""
    unequal, tries = list[tuple[float, LayoutFamily]](), _MORE if space.framework else _TRIES
    for _, x in space.nodes(lambda: run.stopped)[:_DIVES]:
        for least, family in sorted(space.families(x, _best(run)), key=itemgetter(0))[:tries]:
            if run.stopped:
                return
            plan, value = split(space, family, _best(run)) if least < _best(run) else (None, inf)
            if plan is not None and not _offered(run, space, plan):
                unequal.append((value, family))
    for value, family in sorted(unequal, key=itemgetter(0))[:_DIVES]:
        if value < _best(run) and not run.stopped and (plan := equal(space, family, _best(run))[0]):
            run.offer(plan, "branch")


def branch(run: Run, space: Space) -> None:
    """Offer the best layout of all, and raise the bound to what is left."""
    if free := (space.wish, space.framework) == (ANY, ""):
        megatron_rule(run, space)  # a plan before all degrees have a bound
    heap: list[Node] = [(bound, i, x) for i, (bound, x) in enumerate(space.nodes(lambda: run.stopped))]
    number = count(len(heap))
    if not space.whole:
        run.note("bound withheld: only layouts of one chunk a stage are looked at, the model has many kinds of layers")
    dive(run, space)
    while heap and not run.stopped:
        bound, _, x = heappop(heap)
        best = _best(run)
        if space.whole:
            run.raise_bound(min(bound, best) * _SAFE, "branch")
        if bound >= best:
            break
        if isinstance(x, Combination):
            for least, family in space.families(x, best):
                heappush(heap, (max(least, bound), next(number), family))
        elif isinstance(x, LayoutFamily):
            plan, value = split(space, x, best)
            if plan is not None and not _offered(run, space, plan):
                heappush(heap, (max(value * _SAFE, bound), next(number), (x,)))
        elif (plan := equal(space, x[0], best)[0]) is not None:
            run.offer(plan, "branch")
    if not heap and not run.stopped and space.whole:
        _end(run, free)


def _end(run: Run, free: bool) -> None:
    """Say what it means that nothing is left."""
    if run.plan is not None:
        run.raise_bound(_best(run) * _SAFE, "branch")
    else:
        near = nearest(run.problem, lambda: run.stopped) if free else None
        run.prove_infeasible("branch", near.words() if near else "")


def _offered(run: Run, space: Space, plan: LayoutPlan) -> bool:
    """Offer a plan if the framework runs it; return whether it does."""
    runs = not space.framework or again(space.problem, plan, space.framework) is not None
    return runs and (run.offer(plan, "branch") or True)


def _best(run: Run) -> float:
    return inf if run.objective is None else run.objective
