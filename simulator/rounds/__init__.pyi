"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

from ..metrics.summary import finish_time_fairness as finish_time_fairness
from ..metrics.summary import summary as summary
from .jobs import RoundJobs as RoundJobs
from .jobs import RoundsCluster as RoundsCluster
from .jobs import from_gavel as from_gavel
from .jobs import from_workload as from_workload
from .jobs import parse_cluster as parse_cluster
from .outcome import RoundOutcome as RoundOutcome
from .outcome import check_rounds as check_rounds
from .policies import ROUND_POLICIES as ROUND_POLICIES
from .simulate import simulate_rounds as simulate_rounds
