"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

from .cluster import Cluster, parse_cluster
from .jobs import RoundJobs, from_gavel, from_workload
from .metrics import RoundMetrics, finish_time_fairness, summary
from .outcome import RoundOutcome, check
from .policies import POLICIES
from .simulate import simulate_rounds

__all__ = [
    "POLICIES",
    "Cluster",
    "RoundJobs",
    "RoundMetrics",
    "RoundOutcome",
    "check",
    "finish_time_fairness",
    "from_gavel",
    "from_workload",
    "parse_cluster",
    "simulate_rounds",
    "summary",
]
