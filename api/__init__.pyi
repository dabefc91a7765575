"""The public names, and where each lives: type checkers and `__init__.py` read this."""

# isort: skip_file
# fmt: off
from gangplan.hybrid import (
    Entry as Entry, MethodFailed as MethodFailed, close_workers as close_workers, methods as methods,
    register as register, solve as solve, unregister as unregister, warm_up as warm_up,
)
from gangplan.instances import (
    Cluster as Cluster, DeviceType as DeviceType, InstanceError as InstanceError, LatencyPlan as LatencyPlan,
    LatencyProblem as LatencyProblem, Level as Level, OpGraph as OpGraph, PartitionPlan as PartitionPlan,
    PartitionProblem as PartitionProblem, RampTopology as RampTopology, StagesPlan as StagesPlan,
    StagesProblem as StagesProblem, StepPlan as StepPlan, StepProblem as StepProblem, TensorMenu as TensorMenu,
    TreeTopology as TreeTopology, Verdict as Verdict, content_hash as content_hash, dump as dump, load as load,
    megatron as megatron, save as save, verify as verify, with_objective as with_objective,
)
from gangplan.instances.certificates import verify_bound as verify_bound
from gangplan.instances.generators import generate as generate
from gangplan.instances.layout import (
    Calibration as Calibration, GpuPool as GpuPool, LayoutPlan as LayoutPlan, LayoutProblem as LayoutProblem,
    Link as Link, MeasuredLayers as MeasuredLayers, Transformer as Transformer, gpu_pool as gpu_pool,
)
from gangplan.instances.pipeline import PipelinePlan as PipelinePlan, PipelineProblem as PipelineProblem
from gangplan.instances.placement import (
    Demand as Demand, Expected as Expected, Fleet as Fleet, GangJob as GangJob, PlacementPlan as PlacementPlan,
    PlacementProblem as PlacementProblem, Running as Running, SpeedModel as SpeedModel, Task as Task,
)
from gangplan.instances.readers import read as read, read_transformer as read_transformer
from gangplan.instances.schedule import (
    MoldableJob as MoldableJob, NodePool as NodePool, Pool as Pool, SchedulePlan as SchedulePlan,
    ScheduleProblem as ScheduleProblem,
)
from gangplan.instances.workload import Workload as Workload
from gangplan.scheduler import Decision as Decision, Scheduler as Scheduler
from gangplan.solvers import Incumbent as Incumbent, Result as Result, Run as Run, Status as Status, Turn as Turn
from gangplan.solvers.method import Method as Method
from .plot import plot as plot
