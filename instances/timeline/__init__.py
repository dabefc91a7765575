"""When everything of a plan runs, for pictures and tables; the timing is the verifier's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..partition import GraphProblem, LatencyProblem, PartitionProblem, StagesProblem, StepProblem
from ..verify import verify
from .bars import KINDS, Bar, Row, Timeline
from .plans import latency_timeline, load_timeline, stages_timeline, step_timeline

__all__ = ["KINDS", "Bar", "Row", "Timeline", "timeline"]

_DRAFTS: dict[type[GraphProblem], Callable[[Any, Any, Any], Timeline]] = {
    PartitionProblem: load_timeline,
    LatencyProblem: latency_timeline,
    StepProblem: step_timeline,
    StagesProblem: stages_timeline,
}


def timeline(problem: GraphProblem, plan: Any) -> Timeline:
    """Return when everything of `plan` runs.

    Args:
        problem: what the plan answers.
        plan: a feasible plan.

    Raises:
        InstanceError: if `plan` is no plan of this kind of problem.
        ValueError: if the plan violates a constraint.
    """
    verdict = verify(problem, plan)
    if verdict.objective is None:
        raise ValueError(f"an infeasible plan has no timeline: {verdict.violations[0]}")
    return _DRAFTS[type(problem)](problem, plan, verdict)
