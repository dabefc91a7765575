"""The general engine: preemption, shared GPUs, failures, degrees, and policies of one's own."""

from .contract import check_policy
from .failures import Outages
from .named import simulate_named
from .policies import POLICIES
from .policy import DISCIPLINES, Scheduler
from .rows import Rows
from .simulate import simulate
from .view import View

__all__ = [
    "DISCIPLINES",
    "POLICIES",
    "Outages",
    "Rows",
    "Scheduler",
    "View",
    "check_policy",
    "simulate",
    "simulate_named",
]
