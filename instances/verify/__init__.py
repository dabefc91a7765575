"""The verifier: what a plan is worth, from the instance and the plan alone. No solver is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ..errors import InstanceError
from ..kinds import PLANS as PLANS
from ..kinds import PROBLEMS, VERIFIERS
from ..lazy import exported

if TYPE_CHECKING:
    from ..kinds import Answer as Answer
    from ..kinds import Problem as Problem
    from ..layout.problem import LayoutProblem
    from ..partition import GraphProblem
    from ..pipeline import PipelineProblem
    from ..placement import PlacementProblem
    from ..schedule import ScheduleProblem
    from .layout import LayoutVerdict as LayoutVerdict
    from .pipeline import PipelineVerdict as PipelineVerdict
    from .placement import PlacementVerdict as PlacementVerdict
    from .schedule import ScheduleVerdict as ScheduleVerdict
    from .schedule import clock_cost as clock_cost
    from .verdict import TOLERANCE as TOLERANCE
    from .verdict import Verdict as Verdict
else:
    __getattr__ = exported(
        __name__,
        {
            "..kinds": "Answer Problem",
            ".layout": "LayoutVerdict",
            ".pipeline": "PipelineVerdict",
            ".placement": "PlacementVerdict",
            ".schedule": "ScheduleVerdict clock_cost",
            ".verdict": "TOLERANCE Verdict",
        },
    )


@overload
def verify(problem: GraphProblem, plan: Any) -> Verdict: ...
@overload
def verify(problem: PlacementProblem, plan: Any) -> PlacementVerdict: ...
@overload
def verify(problem: ScheduleProblem, plan: Any) -> ScheduleVerdict: ...
@overload
def verify(problem: LayoutProblem, plan: Any) -> LayoutVerdict: ...
@overload
def verify(problem: PipelineProblem, plan: Any) -> PipelineVerdict: ...
def verify(problem: Any, plan: Any) -> Any:
    """Check `plan` against every constraint of `problem` and recompute its objective.

    Raises:
        InstanceError: if `plan` is no plan of this kind of problem.
    """
    objective: Any = getattr(problem, "objective", None)
    if objective not in PROBLEMS or type(problem) is not PROBLEMS[objective]:
        swapped = "; write verify(problem, plan)" if type(problem) in PLANS.values() else ""
        raise InstanceError("problem", f"{type(problem).__name__} is no problem that the verifier knows{swapped}")
    if not isinstance(plan, PLANS[objective]):
        wanted, found = PLANS[objective].__name__, type(plan).__name__
        hint = "; write gangplan.load(path)" if isinstance(plan, str) else "; write result.plan" * (found == "Result")
        raise InstanceError("plan", f"{found} is not a {wanted}, which answers a {objective} problem{hint}")
    return VERIFIERS[objective](problem, plan)
