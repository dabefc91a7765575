"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from typing import TYPE_CHECKING

from .lazy import exported
from .verify import verify as verify  # at once: its package has the same name

if TYPE_CHECKING:
    from .cluster import Cluster as Cluster
    from .cluster import DeviceType as DeviceType
    from .cluster import Level as Level
    from .cluster import RampTopology as RampTopology
    from .cluster import Topology as Topology
    from .cluster import TreeTopology as TreeTopology
    from .documents import content_hash as content_hash
    from .documents import dump as dump
    from .documents import json_schema as json_schema
    from .documents import load as load
    from .documents import save as save
    from .errors import InstanceError as InstanceError
    from .graph import OpGraph as OpGraph
    from .kinds import Answer as Answer
    from .kinds import Plan as Plan
    from .kinds import Problem as Problem
    from .kinds import with_objective as with_objective
    from .partition import GraphProblem as GraphProblem
    from .partition import LatencyPlan as LatencyPlan
    from .partition import LatencyProblem as LatencyProblem
    from .partition import PartitionPlan as PartitionPlan
    from .partition import PartitionProblem as PartitionProblem
    from .partition import StagesPlan as StagesPlan
    from .partition import StagesProblem as StagesProblem
    from .partition import StepPlan as StepPlan
    from .partition import StepProblem as StepProblem
    from .partition import TensorMenu as TensorMenu
    from .partition import megatron as megatron
    from .partition import precedence as precedence
    from .verify import Verdict as Verdict
else:
    __getattr__ = exported(__name__, __file__)
