"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

from typing import TYPE_CHECKING, Any

from . import early as _early  # noqa: F401  # first: it looks after Ctrl-C while the rest is imported

# ruff: isort: split
from gangplan.hybrid import Entry, MethodFailed, methods, register, solve, unregister, warm_up
from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    LatencyPlan,
    LatencyProblem,
    Level,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    RampTopology,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    TensorMenu,
    TreeTopology,
    Verdict,
    content_hash,
    dump,
    load,
    megatron,
    verify,
    with_objective,
)
from gangplan.instances.generators import generate
from gangplan.instances.readers import read
from gangplan.solvers import Incumbent, Result, Run, Status

if TYPE_CHECKING:
    from gangplan.hybrid.online import Scheduler

__all__ = [
    "Cluster",
    "DeviceType",
    "Entry",
    "Incumbent",
    "InstanceError",
    "LatencyPlan",
    "LatencyProblem",
    "Level",
    "MethodFailed",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "RampTopology",
    "Result",
    "Run",
    "Scheduler",
    "StagesPlan",
    "StagesProblem",
    "Status",
    "StepPlan",
    "StepProblem",
    "TensorMenu",
    "TreeTopology",
    "Verdict",
    "content_hash",
    "dump",
    "generate",
    "load",
    "megatron",
    "methods",
    "read",
    "register",
    "solve",
    "unregister",
    "verify",
    "warm_up",
    "with_objective",
]


def __getattr__(name: str) -> Any:
    """Import what takes longer to import once it is asked for."""
    if name == "Scheduler":
        from gangplan.hybrid.online import Scheduler

        return Scheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
