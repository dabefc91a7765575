"""The problems as data: the type of each, what answers it, and what checks the answer."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import InstanceError, brief, did_you_mean, unknown
from .lazy import Lazy

if TYPE_CHECKING:
    from .layout.problem import LayoutPlan, LayoutProblem
    from .partition import GraphProblem, LatencyPlan, PartitionPlan, StagesPlan, StepPlan
    from .pipeline import PipelinePlan, PipelineProblem
    from .placement import PlacementPlan, PlacementProblem
    from .schedule import SchedulePlan, ScheduleProblem

    Plan: TypeAlias = PartitionPlan | LatencyPlan | StepPlan | StagesPlan
    """An answer to a partition problem, one of the first four."""
    Problem: TypeAlias = GraphProblem | PlacementProblem | ScheduleProblem | LayoutProblem | PipelineProblem
    """Whatever can be solved."""
    Answer: TypeAlias = Plan | PlacementPlan | SchedulePlan | LayoutPlan | PipelinePlan
    """A plan of any of them."""

_HOMES = {
    "throughput": (".partition", "Partition"),
    "latency": (".partition", "Latency"),
    "step": (".partition", "Step"),
    "stages": (".partition.stages", "Stages"),
    "placement": (".placement.problem", "Placement"),
    "schedule": (".schedule", "Schedule"),
    "layout": (".layout.problem", "Layout"),
    "pipeline": (".pipeline", "Pipeline"),
}
GRAPHS = tuple(_HOMES)[:4]
"""The objectives of problems of one op graph on one cluster."""
PROBLEMS = Lazy(__package__, {x: f"{module}:{stem}Problem" for x, (module, stem) in _HOMES.items()})
"""The type of every problem, by what it minimises."""
PLANS = Lazy(__package__, {x: f"{module}:{stem}Plan" for x, (module, stem) in _HOMES.items()})
"""The type of what answers it."""
VERIFIERS = Lazy(__package__, {x: f".verify.{'partition' if x in GRAPHS[:3] else x}:verify_{x}" for x in _HOMES})
"""What checks such an answer."""
DOCUMENTS = Lazy(
    __package__,
    {
        f"{'partition' if x == 'throughput' else x}{ending}": f"{module}:{stem}{kind}"
        for x, (module, stem) in _HOMES.items()
        for ending, kind in (("", "Problem"), ("_plan", "Plan"))
    },
)
"""The type of each kind of document."""


def with_objective(problem: GraphProblem, objective: str, **options: Any) -> GraphProblem:
    """Return the problem of the same graph and cluster that minimises `objective`.

    Args:
        problem: any problem of a graph on a cluster; it is returned as it is if nothing changes.
        objective: ``throughput``, ``latency``, ``step`` or ``stages``.
        options: fields of that problem besides graph and cluster, e.g. ``contention=True``.

    Raises:
        InstanceError: if there is no such objective, or the graph cannot have it.
    """
    if not isinstance(objective, str) or objective not in GRAPHS:
        raise InstanceError("objective", unknown(objective, GRAPHS))
    kind = PROBLEMS[objective]
    if objective_of(problem) not in GRAPHS or not hasattr(problem, "graph"):
        raise InstanceError("problem", f"{brief(problem)} is no problem of a graph on a cluster")
    if wrong := [name for name in options if name not in (known := [f.name for f in fields(kind)])]:
        words = f"{options[wrong[0]]!r} does not apply to the objective {objective}{did_you_mean(wrong[0], known)}"
        raise InstanceError(wrong[0], words)
    if type(problem) is kind:
        return replace(problem, **options) if options else problem
    changed: GraphProblem = kind(problem.graph, problem.cluster, **options)
    return changed


def objective_of(value: Any) -> str | None:
    """Return the objective of a problem, or of what a plan answers; `None` of anything else."""
    name = type(value).__name__
    return next((x for x in PROBLEMS if name in (PROBLEMS.attribute(x), PLANS.attribute(x))), None)


def __getattr__(name: str) -> Any:
    """Return one of the three unions, which bring every kind of problem with them."""
    if name == "Plan":
        return reduce(or_, (PLANS[x] for x in GRAPHS))
    if name not in ("Problem", "Answer"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return reduce(or_, (PROBLEMS if name == "Problem" else PLANS).values())
