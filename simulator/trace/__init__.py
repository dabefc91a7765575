"""A trace on a cluster of equal nodes whose GPUs are exclusive: fast, for any policy that orders the queue for good."""

from ..check import check
from ..options import DegreeOptions
from ..outcome import Outcome
from .simulate import DISCIPLINES, ORDERS, by_queue, simulate

__all__ = ["DISCIPLINES", "ORDERS", "DegreeOptions", "Outcome", "by_queue", "check", "simulate"]
