"""Tiny problems of each objective whose optimum the referee knows."""

from __future__ import annotations

from functools import cache
from typing import Any

from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.solvers.method import OBJECTIVES, suite


@cache
def tiny(objective: str, count: int, first: int = 0, shares: bool = False) -> list[tuple[Any, float]]:
    """Return so many random problems with a plain model and a plan that costs something, and their optima.

    Placements have jobs with `shares` of GPUs, too, if asked to: trees of these are large.
    """
    tools, found = suite(objective), []
    for seed in range(first, first + 200):
        problem = tools.random_problem(seed, tools.variants[seed % len(tools.variants)])
        if objective == "placement" and not shares and any(job.worker.gpu % 1 for job in problem.jobs):
            continue
        try:
            teach.milp(problem)
        except InstanceError:
            continue
        if best := tools.optimum(problem):
            found.append((problem, best))
        if len(found) == count:
            return found
    raise AssertionError(f"few of {objective}")


__all__ = ["OBJECTIVES", "tiny"]
