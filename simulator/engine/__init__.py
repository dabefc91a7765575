"""The general engine: preemption, shared GPUs, failures, degrees, and policies of one's own."""

from .failures import Outages
from .policy import Scheduler
from .rows import Rows
from .simulate import simulate

__all__ = ["Outages", "Rows", "Scheduler", "simulate"]
