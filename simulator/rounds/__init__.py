"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

from gangplan.instances.lazy import exported

__getattr__ = exported(
    __name__,
    {
        "..metrics.summary": "finish_time_fairness summary",
        ".jobs": "RoundJobs RoundsCluster from_gavel from_workload parse_cluster",
        ".outcome": "RoundOutcome check_rounds",
        ".policies": "ROUND_POLICIES",
        ".simulate": "simulate_rounds",
    },
)
