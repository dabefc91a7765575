"""The partition problems: which device runs which op of one job, a file an objective."""

from .job import GraphProblem
from .latency import LatencyPlan, LatencyProblem
from .menu import TensorMenu, megatron
from .stages import MEMORY_MODELS, StagesPlan, StagesProblem
from .step import StepPlan, StepProblem
from .throughput import VARIANTS, PartitionPlan, PartitionProblem, precedence

OBJECTIVES: dict[str, type[GraphProblem]] = {
    kind.objective: kind for kind in (PartitionProblem, LatencyProblem, StepProblem, StagesProblem)
}
"""Every partition problem by what it minimises."""

Plan = PartitionPlan | LatencyPlan | StepPlan | StagesPlan
"""An answer to one of them."""

__all__ = [
    "MEMORY_MODELS",
    "OBJECTIVES",
    "VARIANTS",
    "GraphProblem",
    "LatencyPlan",
    "LatencyProblem",
    "PartitionPlan",
    "PartitionProblem",
    "Plan",
    "StagesPlan",
    "StagesProblem",
    "StepPlan",
    "StepProblem",
    "TensorMenu",
    "megatron",
    "precedence",
]
