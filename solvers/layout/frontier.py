"""The frontier of memory against time: the best layout for less and less memory of each GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.verify.layout import verify_layout

from ..run import Run
from .search import branch
from .space import Space


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


def frontier(
    problem: LayoutProblem, time_limit: float, step: float = 0.9, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Point]:
    """Yield the best layout with all memory, then with a little less than that one needs, until nothing fits.

    Args:
        problem: what is split.
        time_limit: seconds for each point.
        step: of the memory that a layout needs, what the next one may need at most.
        stopped: ends it.
    """
    share = 1.0
    while not stopped():
        less = replace(problem, pools=tuple(replace(x, memory=x.memory * share) for x in problem.pools))
        run = Run(less, time_limit=time_limit)
        branch(run, Space(less))
        if run.plan is None or run.objective is None:
            return
        memory = verify_layout(less, run.plan).memory.sum(axis=0)
        each = [problem.pools[k].memory for k in run.plan.pool]
        yield Point(share, run.objective, run.bound, run.plan, float(memory.max()))
        share = step * max(x / y for x, y in zip(memory.tolist(), each, strict=True))
