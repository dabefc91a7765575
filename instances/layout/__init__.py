"""The layout of a training job: how a large model is split over GPUs."""

from ..lazy import exported

__getattr__ = exported(
    __name__,
    {
        ".measured": "MeasuredLayers",
        ".pool": "GpuPool Link gpu_pool",
        ".problem": "Calibration LayoutPlan LayoutProblem",
        ".profiled": "profiled_layers",
        ".transformer": "Transformer",
    },
)
