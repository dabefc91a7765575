"""What policies are told of durations: what jobs really take, the limits that their users asked for, or nothing."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.workload import Workload

ESTIMATES = ("known", "limits", "none")
CLAIRVOYANT = frozenset(("sjf", "ljf", "least_work", "srtf", "tetris", "optimus"))
"""Names of policies that order by durations, or by what is left of them."""
RESERVES = frozenset(("easy", "conservative"))
"""Disciplines that need to know when jobs end."""


def told_durations(workload: Workload, estimates: str) -> FloatArray | None:
    """Return the seconds that policies are told, float64 (n,), `None` for the true ones.

    With ``limits`` that is a job's limit; for a job without one the longest of the trace, as that of a partition
    counts in Slurm; and for a job that outlasted its limit what it took, as if the limit had been raised. With
    ``none`` all jobs are told to take their mean: a policy of one's own may look, and learns nothing of a job.

    Raises:
        InstanceError: if no job of the trace has a limit.
    """
    require_choice(estimates, "estimates", ESTIMATES)
    if estimates == "known":
        return None
    if estimates == "none":
        return np.full(workload.n_jobs, float(workload.duration.mean()))
    limit = np.asarray(workload.limit)
    known = np.isfinite(limit)
    if not known.any():
        raise InstanceError("estimates", "'limits' are told, but no job of the trace has a limit")
    return np.maximum(np.where(known, limit, limit[known].max()), workload.duration)


def check_told(policy: object, discipline: str, estimates: str) -> None:
    """Refuse a policy or a discipline that cannot do without durations, if none are told."""
    if estimates != "none":
        return
    if isinstance(policy, str) and policy in CLAIRVOYANT:
        raise InstanceError("estimates", f"'none' are told, and {policy} needs to know durations")
    if discipline in RESERVES:
        raise InstanceError("estimates", f"'none' are told, and {discipline} needs to know durations")
