"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from .lazy import exported
from .verify import verify as verify  # at once: its package has the same name

__getattr__ = exported(
    __name__,
    {
        ".cluster": "Cluster DeviceType Level RampTopology Topology TreeTopology",
        ".documents": "content_hash dump json_schema load save",
        ".errors": "InstanceError",
        ".graph": "OpGraph",
        ".kinds": "Answer Plan Problem with_objective",
        ".partition": (
            "GraphProblem LatencyPlan LatencyProblem PartitionPlan PartitionProblem StagesPlan StagesProblem "
            "StepPlan StepProblem TensorMenu megatron precedence"
        ),
        ".verify": "Verdict",
    },
)
