"""What came of a round-based simulation, and the check that leases are possible and do the jobs' work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.verify.verdict import time_slack

from .cluster import Cluster
from .jobs import RoundJobs


@dataclass(frozen=True, slots=True, eq=False)
class RoundOutcome:
    """When each of n jobs was done, and its leases: spans in which it kept the same GPUs, r in all.

    Attributes:
        jobs: in order of arrival.
        cluster: of k types.
        finish: seconds, float64 (n,).
        begins: when each round began, seconds, ascending.
        allocations: how often the policy was asked.
        lease_job, lease_type: int32 (r,).
        lease_steps: that the job made, int64 (r,).
        lease_start, lease_end: seconds, float64 (r,).
        lease_gpus: numbers of the GPUs of one lease after the other, each as many as its job's, int32.
        busy: seconds that each job held GPUs, waits for the end of a round left out, float64 (n,).
    """

    jobs: RoundJobs
    cluster: Cluster
    finish: FloatArray
    begins: FloatArray
    allocations: int
    lease_job: IntArray
    lease_type: IntArray
    lease_steps: NDArray[np.int64]
    lease_start: FloatArray
    lease_end: FloatArray
    lease_gpus: IntArray
    busy: FloatArray


def check(outcome: RoundOutcome) -> list[str]:
    """Return what is wrong with a simulation, in words: from the leases alone, whoever made them."""
    o, jobs = outcome, outcome.jobs
    job, close = o.lease_job, time_slack(o.lease_end - o.lease_start, o.lease_end)
    done = np.bincount(job, weights=o.lease_steps, minlength=jobs.n_jobs)
    words = [
        f"job {jobs.names[i]} makes {done[i]:.0f} steps of {jobs.steps[i]}" for i in np.flatnonzero(done != jobs.steps)
    ]
    early = o.lease_start < jobs.submit[job] - 2 * np.spacing(jobs.submit[job])
    words += [f"job {jobs.names[i]} runs before it is submitted" for i in job[early]]
    unknown = ~np.isin(o.lease_start, o.begins)
    words += [f"a lease of job {jobs.names[i]} begins within a round" for i in job[unknown]]
    speed = jobs.speed[job, o.lease_type]
    fast = o.lease_steps > speed * (o.lease_end - o.lease_start + close)
    words += [f"job {jobs.names[i]} makes more steps than its lease has time for" for i in job[fast]]
    last = np.full(jobs.n_jobs, -np.inf)
    np.maximum.at(last, job, o.lease_end)
    words += [f"job {jobs.names[i]} does not end with its last lease" for i in np.flatnonzero(last != o.finish)]
    return words + _shared(o) + _misplaced(o)


def _rows(outcome: RoundOutcome) -> NDArray[np.int64]:
    """Return the lease of each held GPU."""
    return np.repeat(np.arange(len(outcome.lease_job)), outcome.jobs.gpus[outcome.lease_job])


def _misplaced(outcome: RoundOutcome) -> list[str]:
    held = outcome.lease_gpus
    lease = _rows(outcome)
    if len(lease) != len(held):
        return [f"{len(held)} GPUs are held, {len(lease)} are needed"]
    upto = np.cumsum(outcome.cluster.count)
    wrong = np.searchsorted(upto, held, side="right") != outcome.lease_type[lease]
    return [f"job {outcome.jobs.names[outcome.lease_job[lease[i]]]} holds GPU {held[i]} of another type"
            for i in np.flatnonzero(wrong)]  # fmt: skip


def _shared(outcome: RoundOutcome) -> list[str]:
    """Compare neighbours in time, first on each GPU, then of each job, which runs in one place at a time."""
    lease = _rows(outcome)
    if len(lease) != len(outcome.lease_gpus):
        return []
    words = []
    for what, key, of in (
        ("GPU", outcome.lease_gpus, lease),
        ("job", outcome.lease_job, np.arange(len(outcome.lease_job))),
    ):
        start, end = outcome.lease_start[of], outcome.lease_end[of]
        order = np.lexsort((end, start, key))
        both = (key[order][1:] == key[order][:-1]) & (start[order][1:] < end[order][:-1])
        words += [
            f"{what} {key[order[i + 1]]} has two leases at {start[order[i + 1]]:.6g} s" for i in np.flatnonzero(both)
        ]
    return words
