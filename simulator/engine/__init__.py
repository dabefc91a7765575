"""The general engine: preemption, shared GPUs, failures, degrees, and policies of one's own."""

from .contract import check_policy
from .failures import Outages
from .jobs import Long, Rows
from .policies import POLICIES
from .policy import DISCIPLINES, EngineScheduler, EngineView
from .simulate import simulate, simulate_named

__all__ = [
    "DISCIPLINES",
    "POLICIES",
    "EngineScheduler",
    "EngineView",
    "Long",
    "Outages",
    "Rows",
    "View",
    "check_policy",
    "simulate",
    "simulate_named",
]

View = EngineView
"""Its former name, which policies elsewhere import."""
