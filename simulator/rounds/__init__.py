"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

from ..metrics.summary import finish_time_fairness, summary
from .jobs import Cluster, RoundJobs, from_gavel, from_workload, parse_cluster
from .outcome import RoundOutcome, check_rounds
from .policies import ROUND_POLICIES
from .simulate import simulate_rounds

__all__ = [
    "ROUND_POLICIES",
    "Cluster",
    "RoundJobs",
    "RoundOutcome",
    "check_rounds",
    "finish_time_fairness",
    "from_gavel",
    "from_workload",
    "parse_cluster",
    "simulate_rounds",
    "summary",
]
