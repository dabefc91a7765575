"""The partition problems: which device runs which op of one job, a file an objective."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from ..kinds import Plan
    from .problems import (
        VARIANTS,
        GraphProblem,
        LatencyPlan,
        LatencyProblem,
        PartitionPlan,
        PartitionProblem,
        StepPlan,
        StepProblem,
        precedence,
    )
    from .stages import MEMORY_MODELS, StagesPlan, StagesProblem, TensorMenu, megatron
else:
    __getattr__ = exported(
        __name__,
        {
            "..kinds": "Plan",
            ".problems": "VARIANTS GraphProblem LatencyPlan LatencyProblem PartitionPlan PartitionProblem StepPlan "
            "StepProblem precedence",
            ".stages": "MEMORY_MODELS StagesPlan StagesProblem TensorMenu megatron",
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
