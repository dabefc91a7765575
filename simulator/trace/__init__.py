"""A trace on a cluster of equal nodes whose GPUs are exclusive: fast, for any policy that orders the queue for good."""

from .metrics import Metrics, summary
from .outcome import Outcome, check
from .policies import POLICIES
from .simulate import DISCIPLINES, simulate

__all__ = ["DISCIPLINES", "POLICIES", "Metrics", "Outcome", "check", "simulate", "summary"]
