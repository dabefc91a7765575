"""The outcome of a round-based simulation, and the check that leases are possible and do the jobs' work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify.verdict import time_slack

from ..check import check
from ..outcome import Outcome
from ..spans import spans
from .jobs import RoundJobs, RoundsCluster


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RoundOutcome(Outcome):
    """An `Outcome` of leases: spans in which a job kept the same GPUs.

    A type of GPU is a node, and each row is a GPU of it. Durations are those on the type where a job is fastest.

    Attributes:
        jobs: n, in order of arrival.
        begins: when each round began, seconds, ascending.
        allocations: how often the policy was asked.
        overhead: seconds that each lease loses at its start.
        row_steps: steps of the lease that the row is of, int64 (r,).
        row_busy: seconds of the lease, waits for the end of a round left out, float64 (r,).
    """

    jobs: RoundJobs
    cluster: RoundsCluster
    begins: FloatArray
    allocations: int
    overhead: float
    row_steps: NDArray[np.int64]
    row_busy: FloatArray

    @property
    def held(self) -> FloatArray:
        """GPU seconds of each row, waits for the end of a round left out, float64 (r,)."""
        return self.row_busy

    @property
    def useful(self) -> FloatArray:
        """The part of `held` in which the job made steps, float64 (r,)."""
        return 1.0 - self.overhead / self.row_busy

    def alone(self, parts: FloatArray) -> FloatArray:
        """Return the seconds of each job on an equal part of every type's GPUs, at most all of its time there."""
        share = np.array(self.cluster.count) / parts[:, None] / self.jobs.gpus[:, None]
        share /= np.maximum(1.0, share.sum(axis=1))[:, None]
        return np.asarray(self.jobs.steps / (share * self.jobs.speed).sum(axis=1))


def outcome_of(
    jobs: RoundJobs,
    cluster: RoundsCluster,
    begins: FloatArray,
    allocations: int,
    overhead: float,
    leases: tuple[NDArray[np.int64], FloatArray, NDArray[np.int64]],
) -> RoundOutcome:
    """Return the outcome of leases, by their start.

    `leases`: job, type and steps of each, int64 (l, 3); start, end and seconds at work, float64 (l, 3); and the numbers
    of the GPUs of one lease after the other, counted on from type to type.
    """
    (job, kind, steps), (start, end, busy), gpu = leases[0].T, leases[1].T, leases[2]
    work, lease = jobs.workload, np.repeat(np.arange(len(job)), jobs.gpus[job])
    rate = work.duration[job] * (steps / jobs.steps[job]) / (end - start)
    begin, finish = np.full(jobs.n_jobs, np.inf), np.full(jobs.n_jobs, -np.inf)
    np.minimum.at(begin, job, start)
    np.maximum.at(finish, job, end)
    first = np.cumsum(cluster.count) - cluster.count
    one = np.broadcast_to(np.int32(1), len(lease))
    return RoundOutcome(
        workload=work,
        room=np.array(cluster.count, dtype=np.int32),
        start=begin,
        finish=finish,
        row_job=job[lease].astype(np.int32),
        row_node=kind[lease].astype(np.int32),
        row_gpu=(gpu - first[kind[lease]]).astype(np.int32),
        row_gpus=one,
        row_share=np.broadcast_to(1.0, len(lease)),
        row_start=start[lease],
        row_end=end[lease],
        row_rate=rate[lease],
        jobs=jobs,
        cluster=cluster,
        begins=begins,
        allocations=allocations,
        overhead=overhead,
        row_steps=steps[lease],
        row_busy=busy[lease],
    )


def check_rounds(outcome: RoundOutcome) -> list[str]:
    """Return what is wrong with a simulation, in words: as of any outcome, and what leases are held to besides."""
    words = check(outcome)
    if words:
        return words
    jobs, parts = outcome.jobs, spans(outcome)
    row = parts.row[parts.first]
    steps, kind, long = outcome.row_steps[row], outcome.row_node[row], parts.end - parts.start
    done = np.bincount(parts.job, weights=steps, minlength=jobs.n_jobs)
    words += [
        f"job {jobs.names[i]} makes {done[i]:.0f} of {jobs.steps[i]} steps" for i in np.flatnonzero(done != jobs.steps)
    ]
    unknown = ~np.isin(parts.start, outcome.begins)
    words += [f"a lease of job {jobs.names[i]} begins within a round" for i in parts.job[unknown]]
    fast = steps > jobs.speed[parts.job, kind] * (long + time_slack(long, parts.end))
    return words + [f"job {jobs.names[i]} makes more steps than its lease has time for" for i in parts.job[fast]]
