"""The frontier of memory against time: the best layout for less and less memory of each GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.verify.layout import verify_layout

from .explain import fastest
from .space import Space
from .wish import ANY


class Point(NamedTuple):
    """The best layout that was found for some memory.

    Attributes:
        share: what part of its memory each GPU may use.
        seconds: of a step.
        bound: no layout within that memory takes less, `None` if that is not known.
        plan: the layout.
        need: bytes of the GPU that needs most.
    """

    share: float
    seconds: float
    bound: float | None
    plan: LayoutPlan
    need: float


def frontier(problem: LayoutProblem, time_limit: float, step: float = 0.9) -> Iterator[Point]:
    """Yield the best layout with all memory, then with a little less than that one needs, until nothing fits.

    Args:
        problem: what is split.
        time_limit: seconds for each point.
        step: of the memory that a layout needs, what the next one may need at most.
    """
    share = 1.0
    while True:
        less = replace(problem, pools=tuple(replace(x, memory=x.memory * share) for x in problem.pools))
        plan, seconds, bound, _ = fastest(Space(less), ANY, time_limit)
        if plan is None or seconds is None:
            return
        memory = verify_layout(less, plan).memory.sum(axis=0)
        yield Point(share, seconds, bound, plan, float(memory.max()))
        share = step * max(x / problem.pools[k].memory for x, k in zip(memory.tolist(), plan.pool, strict=True))
