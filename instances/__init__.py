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
    StepPlan,
    StepProblem,
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
    "StepPlan",
    "StepProblem",
    "Topology",
    "TreeTopology",
    "Verdict",
    "content_hash",
    "dump",
    "json_schema",
    "load",
    "precedence",
    "verify",
    "with_objective",
]
