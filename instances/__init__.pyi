"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

# isort: skip_file
# fmt: off
from .cluster import (
    Cluster as Cluster, DeviceType as DeviceType, Level as Level, RampTopology as RampTopology, Topology as Topology,
    TreeTopology as TreeTopology,
)
from .documents import (
    content_hash as content_hash, dump as dump, json_schema as json_schema, load as load, save as save,
)
from .errors import InstanceError as InstanceError
from .graph import OpGraph as OpGraph
from .kinds import Answer as Answer, Plan as Plan, Problem as Problem, with_objective as with_objective
from .partition import (
    GraphProblem as GraphProblem, LatencyPlan as LatencyPlan, LatencyProblem as LatencyProblem,
    PartitionPlan as PartitionPlan, PartitionProblem as PartitionProblem, StagesPlan as StagesPlan,
    StagesProblem as StagesProblem, StepPlan as StepPlan, StepProblem as StepProblem, TensorMenu as TensorMenu,
    megatron as megatron, precedence as precedence,
)
from .verify import Verdict as Verdict, verify as verify
