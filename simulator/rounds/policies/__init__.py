"""Policies of a round-based scheduler, by name: each says what share of its time a job should get on each type."""

from __future__ import annotations

from collections.abc import Callable

from ..jobs import RoundJobs, RoundsCluster, RoundsPolicy
from .fifo import Fifo, FifoPerf, FifoRandom
from .shares import FinishTimeFairness, MaxMinFairness, MaxMinFairnessPerf, MaxSumThroughput, MinTotalDuration

ROUND_POLICIES: dict[str, Callable[[RoundJobs, RoundsCluster, int], RoundsPolicy]] = {
    "fifo": Fifo,
    "fifo_random": FifoRandom,
    "fifo_perf": FifoPerf,
    "max_min_fairness": MaxMinFairness,
    "max_min_fairness_perf": MaxMinFairnessPerf,
    "finish_time_fairness": FinishTimeFairness,
    "min_total_duration": MinTotalDuration,
    "max_sum_throughput": MaxSumThroughput,
}
"""By name: what makes a policy for jobs, a cluster and a seed."""

__all__ = ["ROUND_POLICIES", "RoundsPolicy"]
