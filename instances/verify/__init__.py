"""The verifier: what a plan is worth, from the instance and the plan alone. No solver is trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ..errors import InstanceError
from ..partition import (
    GraphProblem,
    LatencyPlan,
    LatencyProblem,
    PartitionPlan,
    PartitionProblem,
    Plan,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
)
from ..placement import PlacementPlan, PlacementProblem
from ..schedule import SchedulePlan, ScheduleProblem
from .clock import clock_cost
from .latency import verify_latency
from .placement import PlacementVerdict, verify_placement
from .schedule import ScheduleVerdict, verify_schedule
from .stages import verify_stages
from .step import verify_step
from .throughput import verify_throughput
from .verdict import TOLERANCE, Verdict

__all__ = [
    "PLANS",
    "TOLERANCE",
    "Answer",
    "PlacementVerdict",
    "Problem",
    "ScheduleVerdict",
    "Verdict",
    "clock_cost",
    "verify",
]

Problem = GraphProblem | PlacementProblem | ScheduleProblem
"""Whatever can be solved."""
Answer = Plan | PlacementPlan | SchedulePlan
"""A plan of any of them."""

PLANS: dict[Any, type] = {
    PartitionProblem: PartitionPlan,
    LatencyProblem: LatencyPlan,
    StepProblem: StepPlan,
    StagesProblem: StagesPlan,
    PlacementProblem: PlacementPlan,
    ScheduleProblem: SchedulePlan,
}
"""What an answer to each problem is."""

_VERIFIERS: dict[type, Callable[[Any, Any], Any]] = {
    PartitionProblem: verify_throughput,
    LatencyProblem: verify_latency,
    StepProblem: verify_step,
    StagesProblem: verify_stages,
    PlacementProblem: verify_placement,
    ScheduleProblem: verify_schedule,
}


@overload
def verify(problem: GraphProblem, plan: Any) -> Verdict: ...
@overload
def verify(problem: PlacementProblem, plan: Any) -> PlacementVerdict: ...
@overload
def verify(problem: ScheduleProblem, plan: Any) -> ScheduleVerdict: ...
def verify(problem: Any, plan: Any) -> Any:
    """Check `plan` against every constraint of `problem` and recompute its objective.

    Raises:
        InstanceError: if `plan` is no plan of this kind of problem.
    """
    kind = type(problem)
    if kind not in PLANS:
        raise InstanceError("problem", f"{kind.__name__} is no problem that the verifier knows")
    if not isinstance(plan, PLANS[kind]):
        wanted, found = PLANS[kind].__name__, type(plan).__name__
        raise InstanceError("plan", f"{found} is not a {wanted}, which answers a {problem.objective} problem")
    return _VERIFIERS[kind](problem, plan)
