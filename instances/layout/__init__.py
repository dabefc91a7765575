"""The layout of a training job: how a large model is split over GPUs."""

from ..lazy import exported

__getattr__ = exported(__name__)
