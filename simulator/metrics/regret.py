"""How far a schedule is from what no policy can beat."""

from __future__ import annotations

from ..trace.outcome import Outcome


def regret(outcome: Outcome) -> float | None:
    """Return the mean JCT over a bound on that of any schedule of these jobs, less 1; at least 0.

    The bound is that of `mean_jct_bound` on all GPUs of the cluster, in O(n log n): that regret is not 0 does not say
    that a better schedule exists. `None` where it does not hold: jobs were rejected, or chose their degree.
    """
    if outcome.menu is not None or not outcome.admitted.all():
        return None
    from gangplan.solvers.schedule.clairvoyant import mean_jct_bound  # brings solvers, which take long to import

    bound = mean_jct_bound(outcome.workload, outcome.n_gpus)
    mean = float((outcome.finish - outcome.workload.submit).mean())
    return max(0.0, mean / bound - 1) if bound > 0 else 0.0
