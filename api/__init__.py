"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gangplan.hybrid import Entry, MethodFailed, methods, register, solve, unregister, warm_up
    from gangplan.hybrid.online import Decision, Scheduler
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
        save,
        verify,
        with_objective,
    )
    from gangplan.instances.generators import generate
    from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem
    from gangplan.instances.readers import read
    from gangplan.instances.schedule import MoldableJob, NodePool, Pool, SchedulePlan, ScheduleProblem
    from gangplan.solvers import Incumbent, Result, Run, Status

    from .plot import picture as plot

_HOMES = {
    ".hybrid": "Entry MethodFailed methods register solve unregister warm_up",
    ".hybrid.online": "Decision Scheduler",
    ".instances": "Cluster DeviceType InstanceError LatencyPlan LatencyProblem Level OpGraph PartitionPlan "
    "PartitionProblem RampTopology StagesPlan StagesProblem StepPlan StepProblem TensorMenu TreeTopology Verdict "
    "content_hash dump load megatron save verify with_objective",
    ".instances.generators": "generate",
    ".instances.placement": "Fleet GangJob PlacementPlan PlacementProblem",
    ".instances.readers": "read",
    ".plot": "plot",
    ".instances.schedule": "MoldableJob NodePool Pool SchedulePlan ScheduleProblem",
    ".solvers": "Incumbent Result Run Status",
}
"""Where each name lives: it is imported when it is first asked for."""

__all__ = [
    "Cluster",
    "Decision",
    "DeviceType",
    "Entry",
    "Fleet",
    "GangJob",
    "Incumbent",
    "InstanceError",
    "LatencyPlan",
    "LatencyProblem",
    "Level",
    "MethodFailed",
    "MoldableJob",
    "NodePool",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "PlacementPlan",
    "PlacementProblem",
    "Pool",
    "RampTopology",
    "Result",
    "Run",
    "SchedulePlan",
    "ScheduleProblem",
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
    "plot",
    "read",
    "register",
    "save",
    "solve",
    "unregister",
    "verify",
    "warm_up",
    "with_objective",
]


def _asked_for(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    setattr(sys.modules[__name__], name, getattr(import_module(home, __name__), name))
    return getattr(sys.modules[__name__], name)


if not TYPE_CHECKING:
    # in an assignment: a type checker that saw the function would take every name for one of ours
    __getattr__ = _asked_for


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
