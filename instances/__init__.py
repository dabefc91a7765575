"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from .cluster import Cluster, DeviceType
from .documents import content_hash, dump, json_schema, load
from .errors import InstanceError
from .graph import OpGraph
from .objectives import with_objective
from .partition import (
    GraphProblem,
    LatencyPlan,
    LatencyProblem,
    PartitionPlan,
    PartitionProblem,
    Plan,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    TensorMenu,
    megatron,
    precedence,
)
from .topology import Level, RampTopology, Topology, TreeTopology
from .verify import Verdict, verify

__all__ = [
    "Cluster",
    "DeviceType",
    "GraphProblem",
    "InstanceError",
    "LatencyPlan",
    "LatencyProblem",
    "Level",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "Plan",
    "RampTopology",
    "StagesPlan",
    "StagesProblem",
    "StepPlan",
    "StepProblem",
    "TensorMenu",
    "Topology",
    "TreeTopology",
    "Verdict",
    "content_hash",
    "dump",
    "json_schema",
    "load",
    "megatron",
    "precedence",
    "verify",
    "with_objective",
]
