"""The partition problems: which device runs which op of one job, a file an objective."""

from .job import GraphProblem
from .latency import LatencyPlan, LatencyProblem
from .step import StepPlan, StepProblem
from .throughput import VARIANTS, PartitionPlan, PartitionProblem, precedence

OBJECTIVES: dict[str, type[GraphProblem]] = {
    kind.objective: kind for kind in (PartitionProblem, LatencyProblem, StepProblem)
}
"""Every partition problem by what it minimises."""

Plan = PartitionPlan | LatencyPlan | StepPlan
"""An answer to one of them."""

__all__ = [
    "OBJECTIVES",
    "VARIANTS",
    "GraphProblem",
    "LatencyPlan",
    "LatencyProblem",
    "PartitionPlan",
    "PartitionProblem",
    "Plan",
    "StepPlan",
    "StepProblem",
    "precedence",
]
