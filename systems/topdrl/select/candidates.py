"""What may be done now: each waiting job that fits, on each allocation that some allocator gives it; and to wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.simulator.gangs.allocate import ALLOCATORS, CLOSEST, choose
from gangplan.simulator.gangs.arrays import NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.step import communication, least_cost
from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints, Ints2, Singles, Singles2, lean

JOBS = 48
"""Waiting jobs that are candidates: those with the least work, one of each kind. A longer queue is cut to these."""
MOST = JOBS * len(ALLOCATORS) + 1
SOON = 8
"""Ends of running jobs that are looked at."""
WAIT = -1
"""The place in the queue of the candidate that starts nobody."""


class Scratch(NamedTuple):
    """Room to work in for one cluster, and what is known of the decision under way; see `scratch_of`.

    Attributes:
        place: in the queue of each candidate's job, or `WAIT`, int64 (MOST,).
        take: GPUs of each node that it gets, int64 (MOST, m).
        cost: of communication there, float64 (MOST,).
        row: features, float32 (MOST, WIDTH).
        listed: places in the queue of the candidates' jobs, by their work, int64 (JOBS,).
        work: of each, float64 (JOBS,).
        ends: when the next of the running jobs are expected to end, seconds from now, float64 (SOON,).
        idle: GPUs of each node now and after each of these, int64 (SOON + 1, m).
        known: the cost for so many GPUs placed closest now and after each of these, nan if not worked out,
            infinite if they do not fit; float64 (SOON + 1, GPUs + 1).
        ideal: the cost for so many GPUs on the empty cluster, float64 (GPUs + 1,).
        last: when the last job of each node is expected to end, seconds from now, float64 (m,).
        free: of use to allocators, int64 (m,).
        stats: of all arrivals so far, float64 (STATS,).
        score: of each candidate, float32 (MOST,).
    """

    place: Ints
    take: Ints2
    cost: Floats
    row: Singles2
    listed: Ints
    work: Floats
    ends: Floats
    idle: Ints2
    known: Floats2
    ideal: Floats
    last: Floats
    free: Ints
    stats: Floats
    score: Singles


STATS = 9
"""See `gangplan.systems.topdrl.select.features.see`."""


def scratch_of(cluster: Cluster, width: int) -> Scratch:
    """Return room to work in for a cluster and rows of so many features."""
    m, gpus, ideal = len(cluster.rack), int(cluster.first[-1]), least_cost(cluster)
    return Scratch(
        np.zeros(MOST, np.int64), np.zeros((MOST, m), np.int64), np.zeros(MOST), np.zeros((MOST, width), np.float32),
        np.zeros(JOBS, np.int64), np.zeros(JOBS), np.zeros(SOON), np.zeros((SOON + 1, m), np.int64),
        np.zeros((SOON + 1, gpus + 1)), ideal, np.zeros(m), np.zeros(m, np.int64), np.zeros(STATS),
        np.zeros(MOST, np.float32),
    )  # fmt: skip


@lean
def list_candidates(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> int:
    """Write the candidates, and return how many there are: none if no waiting job fits.

    To wait is the first, if something runs, whose end will change the state; else it is left out.
    """
    found = _list_jobs(jobs, state, s)
    if found == 0:
        return 0
    k = 0
    if state.count[RUNNING] > 0:
        s.place[0], s.cost[0] = WAIT, 0.0
        s.take[0, :] = 0
        k = 1
    for i in range(found):
        job, begin = state.queue[s.listed[i]], k
        for rule in range(CLOSEST, -1, -1):  # ours first: of equal allocations it is the one that stays
            choose(rule, jobs.gpus[job], cluster, state.free, s.take[k])
            if _is_new(begin, k, s):
                s.place[k], s.cost[k] = s.listed[i], communication(cluster, s.take[k])
                k += 1
            if jobs.gpus[job] == 1 and k > begin + 1:
                break
    return k


@lean
def _is_new(begin: int, k: int, s: Scratch) -> bool:
    for other in range(begin, k):
        same = True
        for node in range(s.take.shape[1]):
            if s.take[other, node] != s.take[k, node]:
                same = False
                break
        if same:
            return False
    return True


@lean
def _list_jobs(jobs: Jobs, state: State, s: Scratch) -> int:
    """Write the places in the queue of the jobs with the least work that fit; of equal ones the first submitted."""
    idle, found = 0, 0
    for node in range(len(state.free)):
        idle += state.free[node]
    for at in range(state.count[WAITING]):
        job = state.queue[at]
        if jobs.gpus[job] > idle:
            continue
        work = jobs.expected[job] * jobs.gpus[job]
        if found == JOBS and work >= s.work[JOBS - 1]:
            continue
        place, twin = found, False
        while place > 0 and s.work[place - 1] >= work:
            place -= 1
            if s.work[place] == work and _alike(jobs, state.queue[s.listed[place]], job):
                twin = True
                break
        if twin:
            continue
        while place < found and s.work[place] <= work:  # behind its equals
            place += 1
        found = min(found + 1, JOBS)
        for i in range(found - 1, place, -1):
            s.listed[i], s.work[i] = s.listed[i - 1], s.work[i - 1]
        s.listed[place], s.work[place] = at, work
    return found


@lean
def _alike(jobs: Jobs, a: int, b: int) -> bool:
    alike = jobs.expected[a] == jobs.expected[b] and jobs.gpus[a] == jobs.gpus[b]
    return bool(alike and jobs.intensity[a] == jobs.intensity[b])


@lean
def remaining(jobs: Jobs, state: State, job: int) -> float:
    """Return in how many seconds a running job is expected to end; one that should have ended, in half its age."""
    age = state.clock[NOW] - state.start[job]
    left = jobs.expected[job] * (1 + jobs.intensity[job] * state.cost[job]) - age
    return float(left if left > 0 else 0.5 * age)
