"""The partition problems: which device runs which op of one job, a file an objective."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from ..kinds import Plan
    from .job import GraphProblem
    from .latency import LatencyPlan, LatencyProblem
    from .menu import TensorMenu, megatron
    from .stages import MEMORY_MODELS, StagesPlan, StagesProblem
    from .step import StepPlan, StepProblem
    from .throughput import VARIANTS, PartitionPlan, PartitionProblem, precedence
else:
    __getattr__ = exported(
        __name__,
        {
            "..kinds": "Plan",
            ".job": "GraphProblem",
            ".latency": "LatencyPlan LatencyProblem",
            ".menu": "TensorMenu megatron",
            ".stages": "MEMORY_MODELS StagesPlan StagesProblem",
            ".step": "StepPlan StepProblem",
            ".throughput": "VARIANTS PartitionPlan PartitionProblem precedence",
        },
    )

__all__ = [
    "MEMORY_MODELS",
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
