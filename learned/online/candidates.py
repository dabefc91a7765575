"""What may be done now: each waiting job that fits, on each allocation that some allocator gives it; and to wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.simulator.gangs.allocate import CLOSEST, choose
from gangplan.simulator.gangs.arrays import NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula import hope, key_of
from gangplan.simulator.gangs.step import communication, least_cost, total
from gangplan.solvers.compiled.kernel import Floats, Ints, Ints2, Singles, lean

WAIT = -1
"""The place in the queue of the candidate that starts nobody."""
IN_SIGHT = 128
"""Waiting jobs that the network sees: the first by the rule."""
BLOCKED = 16
"""Waiting jobs that do not fit and are looked at: the first by the rule."""
SMALL, MEDIUM = 64, 512
"""Nodes up to which a cluster is small, or of medium size: of a larger one fewer candidates are looked at."""
JOBS = (48, 24, 8)
"""Waiting jobs that are candidates, by the size of the cluster: the first by the rule, one of each kind."""
SOON = (8, 8, 3)
"""Ends of running jobs that are looked at, likewise."""
LATER = 1e6
"""What is added to the key of a job that waits for closer GPUs while jobs are listed."""
PLACES = (4, 4, 1)
"""Allocators that are asked, likewise: for the closest GPUs first."""

(
    MEAN, WORK, GPUS, DEVIATION, LOAD, DEARNESS, LARGEST_NODE, LARGEST_RACK, SEEN, SURPRISE, TYPICAL, RUNS, CROWD,
    UNSEEN,
) = range(14)  # fmt: skip
"""Of `CandidateScratch.stats`: mean expected length, s; mean work, GPU s; mean GPUs; deviation of the log of it;
work a second of all GPUs; mean logarithm of the slowdown on an empty cluster; GPUs of the largest node and rack; how
many arrived; deviation of the logarithm of a length from the expected one; what `look_at` returns, and the jobs that
wait and are not in the state."""


class CandidateScratch(NamedTuple):
    """Room to work in for one cluster, and what is known of the decision under way; see `scratch_of`.

    Attributes:
        place: in the queue of each candidate's job, or `WAIT`, int64 (A,).
        of: the place of its job in `listed`, int64 (A,).
        take: GPUs of each node that it gets, int64 (A, m).
        cost: of communication there, float64 (A,).
        listed: places in the queue of the candidates' jobs, by their keys, int64 (JOBS,).
        key: of each, float64 (JOBS,).
        blocked: places in the queue of jobs that do not fit, by their keys, int64 (BLOCKED,).
        least: key of each, float64 (BLOCKED,).
        ends: when the next of the running jobs are expected to end, seconds from now, float64 (SOON,).
        idle: GPUs of each node now and after each of these, int64 (SOON + 1, m).
        known: the cost for so many GPUs placed closest now and after each of these, nan if not worked out,
            infinite if they do not fit; float64 (SOON + 1, GPUs + 1).
        ideal: the cost for so many GPUs on the empty cluster, float64 (GPUs + 1,).
        last: when the last job of each node is expected to end, seconds from now, float64 (m,).
        free: of use to allocators, int64 (m,).
        stats: of all arrivals so far, and of the queue, float64 (14,).
        score: of each candidate, float32 (A,).
        most: entries of `PLACES`, how many of `listed` and `blocked` there are, what `strange` says, and whether
            waiting makes no sense, int64 (5,).
        group: the kind of each rack, then of each node, among those that are told apart, int64 (racks + m,).
    """

    place: Ints
    of: Ints
    take: Ints2
    cost: Floats
    listed: Ints
    key: Floats
    blocked: Ints
    least: Floats
    ends: Floats
    idle: Ints2
    known: Floats
    ideal: Floats
    last: Floats
    free: Ints
    stats: Floats
    score: Singles
    most: Ints
    group: Ints


ASKED, LISTED, HELD_UP, ODD, AT_ONCE = range(5)
"""Of `CandidateScratch.most`."""


def scratch_of(cluster: Cluster) -> CandidateScratch:
    """Return room to work in for a cluster."""
    m, gpus, racks = len(cluster.rack), int(cluster.first[-1]), len(cluster.begin) - 1
    size = (m > SMALL) + (m > MEDIUM)
    jobs, soon, places = JOBS[size], SOON[size], PLACES[size]
    a, largest = jobs * places + 1, int(np.diff(cluster.first).max(initial=0))
    known = max((soon + 1) * (gpus + 1), min(racks, SMALL) * (largest + 1), SMALL, m)
    return CandidateScratch(
        np.zeros(a, np.int64), np.zeros(a, np.int64), np.zeros((a, m), np.int64), np.zeros(a),
        np.zeros(jobs, np.int64), np.zeros(jobs), np.zeros(BLOCKED, np.int64), np.zeros(BLOCKED), np.zeros(soon),
        np.zeros((soon + 1, m), np.int64), np.zeros(known), least_cost(cluster), np.zeros(m),
        np.zeros(m, np.int64), np.zeros(14), np.zeros(a, np.float32), np.array([places, 0, 0, -1, 0]),
        np.zeros(racks + m, np.int64),
    )  # fmt: skip


@lean
def list_candidates(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, rule: Floats) -> int:
    """Write the candidates, and return how many there are: none if no waiting job fits.

    To wait is the first, if something runs, whose end will change the state; else it is left out.
    """
    _list_jobs(jobs, cluster, state, s, rule)
    if s.most[LISTED] == 0:
        return 0
    k = 0
    if state.count[RUNNING] > 0:
        s.place[0], s.cost[0], s.of[0] = WAIT, 0.0, -1
        s.take[0, :] = 0
        k = 1
    for i in range(s.most[LISTED]):
        job, begin = state.queue[s.listed[i]], k
        for asked in range(s.most[ASKED]):  # ours first: of equal allocations it is the one that stays
            choose(CLOSEST - asked, jobs.gpus[job], cluster, state.free, s.take[k])
            if _is_new(begin, k, s):
                s.place[k], s.of[k], s.cost[k] = s.listed[i], i, communication(cluster, s.take[k])
                k += 1
            if jobs.gpus[job] == 1 and k > begin + 1:
                break
    return k


@lean
def _is_new(begin: int, k: int, s: CandidateScratch) -> bool:
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
def _list_jobs(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, rule: Floats) -> None:
    """Write the places in the queue of the first jobs by the rule, before those that it has wait for closer GPUs.

    Of equal ones the first submitted.
    """
    idle, fit, not_fit, cost = total(state.free), 0, 0, s.known
    cost[:] = np.nan
    seen, now = (s.stats[TYPICAL], s.stats[RUNS], s.stats[CROWD]), state.clock[NOW]
    for at in range(state.count[WAITING]):
        job = state.queue[at]
        need, key = jobs.gpus[job], key_of(jobs, job, now, s.stats[CROWD], s.ideal, rule)
        if need > idle:
            not_fit = _sort_in(jobs, state, at, key, s.blocked, s.least, not_fit)
            continue
        if np.isnan(cost[need]):
            choose(CLOSEST, need, cluster, state.free, s.free)
            cost[need] = communication(cluster, s.free)
        late = state.count[RUNNING] > 0 and hope(jobs, job, cost[need], now, seen, s.ideal, rule) > 0
        fit = _sort_in(jobs, state, at, key + LATER if late else key, s.listed, s.key, fit)
    for i in range(fit):
        if s.key[i] > LATER / 2:
            s.key[i] -= LATER
    s.most[LISTED], s.most[HELD_UP] = fit, not_fit


@lean
def _sort_in(jobs: Jobs, state: State, at: int, key: float, listed: Ints, keys: Floats, count: int) -> int:
    """Put a job of the queue to its place among those listed, one of each kind, and return how many there are."""
    job = state.queue[at]
    if count == len(listed) and key >= keys[count - 1]:
        return count
    place = count
    while place > 0 and keys[place - 1] >= key:
        place -= 1
        if keys[place] == key and _alike(jobs, state.queue[listed[place]], job):
            return count
    while place < count and keys[place] <= key:  # behind its equals
        place += 1
    count = min(count + 1, len(listed))
    for i in range(count - 1, place, -1):
        listed[i], keys[i] = listed[i - 1], keys[i - 1]
    listed[place], keys[place] = at, key
    return count


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
