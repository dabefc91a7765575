"""The layout of a training job: how a large model is split over GPUs."""

from .measured import MeasuredLayers as MeasuredLayers
from .pool import GpuPool as GpuPool
from .pool import Link as Link
from .pool import gpu_pool as gpu_pool
from .problem import Calibration as Calibration
from .problem import LayoutPlan as LayoutPlan
from .problem import LayoutProblem as LayoutProblem
from .profiled import profiled_layers as profiled_layers
from .transformer import Transformer as Transformer
