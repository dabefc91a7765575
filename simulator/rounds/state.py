"""What the mechanism keeps from round to round, as arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Floats, Floats2, Ints, Ints2

from .jobs import RoundJobs, RoundsCluster

NOW, RESET, LENGTH, GAP, OVERHEAD, ENDED = range(6)
"""Places in `Rounds.times`: now, the last allocation (0 lets the next one come at once), a round, the least time
between allocations, a fresh start, and the end of the last round."""
ACTIVE, NEXT, STALE, TRIED, STRICT, ROUNDS, LEASES, HELD, RUNNING, STAMP = range(10)
"""Places in `Rounds.counts`: active jobs, the next to arrive, whether shares are stale, orders of types used up,
whether a job without a share never runs, rounds that began, leases and GPUs of leases written, jobs with an open lease,
and the number of the round that marks who is chosen in it."""


class Rounds(NamedTuple):
    """Jobs n in order of arrival, types k, GPUs g; a type's ranking holds the active jobs, who is served first first.

    Times count from the first arrival, so that a trace in Unix time is run as finely as one from 0.

    Attributes:
        submit, gpus, speed: as in `RoundJobs`.
        room: GPUs of each type, int64 (k,).
        left: steps still to do, int64 (n,).
        share: of time on each type, as the policy last said, float64 (n, k).
        known: whether the policy has seen the job, bool (n,).
        received: half a round, and seconds on each type since the last allocation, each round from the end of the one
            before it, float64 (n, k).
        deficit: seconds owed on each type from before the last allocation, float64 (n, k).
        priority: share over seconds received, float64 (n, k).
        ranking: jobs, int64 (k, n); the first `counts[ACTIVE]` of each row are in use and sorted.
        chosen, place, many: who runs this round on each type and its place in the ranking, int64 (k, n), and how many.
        mark: number of the last round in which a job ran, int64 (n,).
        running: jobs whose lease is open after a round, int64 (g,).
        kind: type of the open lease of each job, -1 if none, int64 (n,).
        own, own_at: GPUs of the open leases, int64, and where each job's begin.
        lease, span: of the leases written, job, type, steps, int64 (r, 3); start, end, seconds at work, float64 (r, 3).
        open_steps, open_span: steps so far, and the same of each job's open lease, int64 (n,) and float64 (n, 3).
        held: GPUs of the leases written, one lease after the other, int64.
        begins: when each round began, float64.
        times, counts: scalars, by the names above.
    """

    submit: Floats
    gpus: Ints
    speed: Floats2
    room: Ints
    left: Ints
    share: Floats2
    known: Bools
    received: Floats2
    deficit: Floats2
    priority: Floats2
    ranking: Ints2
    chosen: Ints2
    place: Ints2
    many: Ints
    mark: Ints
    running: Ints
    kind: Ints
    own: Ints
    own_at: Ints
    lease: Ints2
    span: Floats2
    open_steps: Ints
    open_span: Floats2
    held: Ints
    begins: Floats
    times: Floats
    counts: Ints


def initial(
    jobs: RoundJobs, cluster: RoundsCluster, times: tuple[float, float, float], strict: bool, chunk: int
) -> Rounds:
    """Return the state before the first job; `times` are a round, the least gap and the overhead."""
    n, k = jobs.speed.shape
    rows = (chunk + 2) * cluster.gpus  # each round ends at most as many leases as there are GPUs
    gpus = jobs.gpus.astype(np.int64)
    counts = np.zeros(10, dtype=np.int64)
    counts[STRICT] = strict
    return Rounds(
        submit=jobs.submit - jobs.submit[0],
        gpus=gpus,
        speed=np.array(jobs.speed),
        room=np.array(cluster.count, dtype=np.int64),
        left=jobs.steps.copy(),
        share=np.zeros((n, k)),
        known=np.zeros(n, dtype=np.bool_),
        received=np.full((n, k), times[0] / 2.0),
        deficit=np.zeros((n, k)),
        priority=np.zeros((n, k)),
        ranking=np.zeros((k, n), dtype=np.int64),
        chosen=np.zeros((k, n), dtype=np.int64),
        place=np.zeros((k, n), dtype=np.int64),
        many=np.zeros(k, dtype=np.int64),
        mark=np.zeros(n, dtype=np.int64),
        running=np.zeros(cluster.gpus, dtype=np.int64),
        kind=np.full(n, -1, dtype=np.int64),
        own=np.zeros(int(gpus.sum()), dtype=np.int64),
        own_at=np.cumsum(gpus) - gpus,
        lease=np.zeros((rows, 3), dtype=np.int64),
        span=np.zeros((rows, 3)),
        open_steps=np.zeros(n, dtype=np.int64),
        open_span=np.zeros((n, 3)),
        held=np.zeros(rows, dtype=np.int64),
        begins=np.zeros(chunk),
        times=np.array([0.0, 0.0, *times, 0.0]),
        counts=counts,
    )
