"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

import sys
from importlib import import_module
from typing import Any

_NAMES = {
    "gangplan.hybrid": "Entry MethodFailed close_workers methods register solve unregister warm_up",
    "gangplan.instances": (
        "Cluster DeviceType InstanceError LatencyPlan LatencyProblem Level OpGraph PartitionPlan "
        "PartitionProblem RampTopology StagesPlan StagesProblem StepPlan StepProblem TensorMenu TreeTopology "
        "Verdict content_hash dump load megatron save verify with_objective"
    ),
    "gangplan.instances.certificates": "verify_bound",
    "gangplan.instances.generators": "generate",
    "gangplan.instances.layout": (
        "Calibration GpuPool LayoutPlan LayoutProblem Link MeasuredLayers Transformer gpu_pool"
    ),
    "gangplan.instances.pipeline": "PipelinePlan PipelineProblem",
    "gangplan.instances.placement": (
        "Demand Expected Fleet GangJob PlacementPlan PlacementProblem Running SpeedModel Task"
    ),
    "gangplan.instances.readers": "read read_transformer",
    "gangplan.instances.schedule": "MoldableJob NodePool Pool SchedulePlan ScheduleProblem",
    "gangplan.instances.workload": "Workload",
    "gangplan.scheduler": "Decision Scheduler",
    "gangplan.solvers": "Incumbent Result Run Status Turn",
    "gangplan.solvers.method": "Method",
    ".plot": "plot",
}
"""Public names by the module they live in; imported when asked for. The stub beside this file tells type checkers."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    setattr(sys.modules[__name__], name, getattr(import_module(_HOMES[name], __name__), name))
    return getattr(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
