"""A trace on a cluster of equal nodes whose GPUs are exclusive: fast, for any policy that orders the queue for good."""

from ..check import check
from ..options import Menu
from ..outcome import Outcome
from .policies import POLICIES
from .simulate import DISCIPLINES, by_queue, simulate

__all__ = ["DISCIPLINES", "POLICIES", "Menu", "Outcome", "by_queue", "check", "simulate"]
