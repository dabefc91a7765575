"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from .cluster import Cluster, DeviceType
from .documents import content_hash, dump, json_schema, load
from .errors import InstanceError
from .graph import OpGraph
from .partition import PartitionPlan, PartitionProblem, precedence
from .topology import Level, RampTopology, Topology, TreeTopology
from .verify import Verdict, verify

__all__ = [
    "Cluster",
    "DeviceType",
    "InstanceError",
    "Level",
    "OpGraph",
    "PartitionPlan",
    "PartitionProblem",
    "RampTopology",
    "Topology",
    "TreeTopology",
    "Verdict",
    "content_hash",
    "dump",
    "json_schema",
    "load",
    "precedence",
    "verify",
]
