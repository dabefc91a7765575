"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

from gangplan.hybrid import methods, solve
from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    Level,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    RampTopology,
    TreeTopology,
    Verdict,
    content_hash,
    dump,
    load,
    verify,
)
from gangplan.instances.generators import generate
from gangplan.instances.readers import read
from gangplan.solvers import Incumbent, Result, Run, Status

__all__ = [
    "Cluster",
    "DeviceType",
    "Incumbent",
    "InstanceError",
    "Level",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "RampTopology",
    "Result",
    "Run",
    "Status",
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
]
