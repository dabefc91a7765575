"""What happens over time: where the sub-ops of a split job go, what their data costs, and how long a step takes."""

from .ramp.placement import first_fit
from .ramp.step import Step, training_step

__all__ = ["Step", "first_fit", "training_step"]
