"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from typing import TYPE_CHECKING

from .lazy import exported
from .verify import verify  # at once: its package has the same name

if TYPE_CHECKING:
    from .cluster import Cluster, DeviceType, Level, RampTopology, Topology, TreeTopology
    from .documents import content_hash, dump, json_schema, load, save
    from .errors import InstanceError
    from .graph import OpGraph
    from .kinds import Answer, Plan, Problem, with_objective
    from .partition import (
        GraphProblem,
        LatencyPlan,
        LatencyProblem,
        PartitionPlan,
        PartitionProblem,
        StagesPlan,
        StagesProblem,
        StepPlan,
        StepProblem,
        TensorMenu,
        megatron,
        precedence,
    )
    from .verify import Verdict
else:
    __getattr__ = exported(
        __name__,
        {
            ".cluster": "Cluster DeviceType Level RampTopology Topology TreeTopology",
            ".documents": "content_hash dump json_schema load save",
            ".errors": "InstanceError",
            ".graph": "OpGraph",
            ".kinds": "Answer Plan Problem with_objective",
            ".partition": "GraphProblem LatencyPlan LatencyProblem PartitionPlan PartitionProblem StagesPlan "
            "StagesProblem StepPlan StepProblem TensorMenu megatron precedence",
            ".verify": "Verdict",
        },
    )

__all__ = [
    "Answer",
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
    "Problem",
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
    "save",
    "verify",
    "with_objective",
]
