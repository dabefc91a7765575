"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

from gangplan.hybrid import methods, solve
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
    StepPlan,
    StepProblem,
    TreeTopology,
    Verdict,
    content_hash,
    dump,
    load,
    verify,
    with_objective,
)
from gangplan.instances.generators import generate
from gangplan.instances.readers import read
from gangplan.solvers import Incumbent, Result, Run, Status

__all__ = [
    "Cluster",
    "DeviceType",
    "Incumbent",
    "InstanceError",
    "LatencyPlan",
    "LatencyProblem",
    "Level",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "RampTopology",
    "Result",
    "Run",
    "Status",
    "StepPlan",
    "StepProblem",
    "TreeTopology",
    "Verdict",
    "content_hash",
    "dump",
    "generate",
    "load",
    "methods",
    "read",
    "solve",
    "verify",
    "with_objective",
]
