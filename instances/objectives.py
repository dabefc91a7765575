"""One job on one cluster, with another objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .errors import InstanceError
from .partition import OBJECTIVES, GraphProblem


def with_objective(problem: GraphProblem, objective: str, **options: Any) -> GraphProblem:
    """Return the problem of the same graph and cluster that minimises `objective`.

    Args:
        problem: any problem of a graph on a cluster; it is returned as it is if nothing changes.
        objective: ``throughput``, ``latency``, ``step``, ...: a key of `OBJECTIVES`.
        options: fields of that problem besides graph and cluster, e.g. ``contention=True``.

    Raises:
        InstanceError: if there is no such objective, or the graph cannot have it.
    """
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InstanceError("objective", f"{objective!r} is not one of {', '.join(OBJECTIVES)}")
    kind = OBJECTIVES[objective]
    if type(problem) is kind:
        return replace(problem, **options) if options else problem
    return kind(problem.graph, problem.cluster, **options)
