"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

# isort: skip_file
# fmt: off
from ..metrics.summary import finish_time_fairness as finish_time_fairness, summary as summary
from .jobs import (
    RoundJobs as RoundJobs, RoundsCluster as RoundsCluster, from_gavel as from_gavel, from_workload as from_workload,
    parse_cluster as parse_cluster,
)
from .outcome import RoundOutcome as RoundOutcome, check_rounds as check_rounds
from .policies import ROUND_POLICIES as ROUND_POLICIES
from .simulate import simulate_rounds as simulate_rounds
