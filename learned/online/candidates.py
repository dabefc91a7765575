"""What may be done now: each waiting job that fits, on each allocation that some allocator gives it; and to wait."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, declare, final
from cython.cimports.libc.math import isnan

from gangplan.simulator.gangs.arrays import Arrays, Cluster
from gangplan.simulator.gangs.step import least_cost

if not cython.compiled:
    from gangplan.simulator.gangs.allocate import CLOSEST, choose
    from gangplan.simulator.gangs.arrays import NOW, RUNNING, Jobs, State
    from gangplan.simulator.gangs.formula import Formula, hope, key_of
    from gangplan.simulator.gangs.step import communication, total
    from gangplan.solvers.native import Float, Floats, Int, Ints

    WAIT = -1
    """The place in the queue of the candidate that starts nobody."""
    IN_SIGHT = 128
    """Waiting jobs that the network sees: the first by the rule."""
    BLOCKED = 16
    """Waiting jobs that do not fit and are looked at: the first by the rule."""
    (
        MEAN, WORK, GPUS, DEVIATION, LOAD, DEARNESS, LARGEST_NODE, LARGEST_RACK, SEEN, SURPRISE, TYPICAL, RUNS, CROWD,
        UNSEEN, STATS,
    ) = range(15)  # fmt: skip
    """Of `CandidateScratch.stats`: mean expected length, s; mean work, GPU s; mean GPUs; deviation of the log of it;
    work a second of all GPUs; mean logarithm of the slowdown on an empty cluster; GPUs of the largest node and rack;
    how many arrived; deviation of the logarithm of a length from the expected one; what `look_at` notes, and the jobs
    that wait and are not in the state."""
    ASKED, LISTED, HELD_UP, ODD, AT_ONCE = range(5)
    """Of `CandidateScratch.most`."""
    RUNS_SEEN = 64
    """Running jobs that are seen: the next to end."""
    APART = 64
    """Racks up to which each is told apart, and nodes likewise."""
    STEPS = 8
    """Beyond `APART` racks are told apart by so many steps of their idle nodes, and of their idle GPUs elsewhere."""

SMALL, MEDIUM = 64, 512
"""Nodes up to which a cluster is small, or of medium size: of a larger one fewer candidates are looked at."""
JOBS = (48, 24, 8)
"""Waiting jobs that are candidates, by the size of the cluster: the first by the rule, one of each kind."""
SOON = (8, 8, 3)
"""Ends of running jobs that are looked at, likewise."""
PLACES = (4, 4, 1)
"""Allocators that are asked, likewise: for the closest GPUs first."""
LATER = declare(Float, 1e6)
"""What is added to the key of a job that waits for closer GPUs while jobs are listed."""
NEVER = declare(Float, float("inf"))
UNKNOWN = declare(Float, float("nan"))


@final
@cclass
class CandidateScratch(Arrays):
    """Room to work in for one cluster, and what is known of the decision under way.

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
        seen, queue, early: places in the queue of the jobs in sight, these, and their keys, (IN_SIGHT,).
        work: GPU seconds that the job of each candidate would take, float64 (A,).
        runs: running jobs that are seen: the next to end, int64 (RUNS_SEEN,).
        waiting, running: how many there are of `queue` and of `runs`.
        gain, better_in: see `gangplan.learned.online.features`.
        held, need, shadow, spare: of the job with the least work that does not fit: its work, infinite if there is
            none, its GPUs, when it will fit, and what is spare then.
        now, whole_now: idle GPUs and wholly idle nodes.
        left, whole, largest, best, broken: idle GPUs, wholly idle nodes, and the idle GPUs of the best node, of the
            best rack and of broken nodes, where that was looked at last.
        racks, nodes: how many kinds of them are told apart.
        rows, edges: of a graph of the cluster, at most.
    """

    def __init__(self, cluster: Cluster) -> None:
        m, gpus, racks, ints = len(cluster.rack), len(cluster.node), len(cluster.begin) - 1, np.int64
        size = (m > SMALL) + (m > MEDIUM)
        jobs, soon, places = JOBS[size], SOON[size], PLACES[size]
        a, largest = jobs * places + 1, int(np.diff(cluster.first).max(initial=0))
        known = max((soon + 1) * (gpus + 1), min(racks, SMALL) * (largest + 1), SMALL, m)
        own = {
            "place": np.zeros(a, ints), "of": np.zeros(a, ints), "take": np.zeros((a, m), ints), "cost": np.zeros(a),
            "listed": np.zeros(jobs, ints), "key": np.zeros(jobs), "blocked": np.zeros(BLOCKED, ints),
            "least": np.zeros(BLOCKED), "ends": np.zeros(soon), "idle": np.zeros((soon + 1, m), ints),
            "known": np.zeros(known), "ideal": least_cost(cluster), "last": np.zeros(m), "free": np.zeros(m, ints),
            "stats": np.zeros(STATS), "score": np.zeros(a, np.float32), "most": np.array([places, 0, 0, -1, 0]),
            "group": np.zeros(racks + m, ints), "seen": np.zeros(IN_SIGHT, ints), "queue": np.zeros(IN_SIGHT, ints),
            "early": np.zeros(IN_SIGHT), "work": np.zeros(a), "runs": np.zeros(RUNS_SEEN, ints),
        }  # fmt: skip
        self.place, self.of, self.take, self.cost, self.listed, self.key, self.blocked, *rest = own.values()
        self.least, self.ends, self.idle, self.known, self.ideal, self.last, self.free, self.stats, *rest = rest
        self.score, self.most, self.group, self.seen, self.queue, self.early, self.work, self.runs = rest
        self.own(" ".join(own), tuple(own.values()), *map(len, own.values()))
        self.waiting = self.running = self.racks = self.nodes = 0
        kinds = racks if racks <= APART else STEPS * STEPS
        nodes = m if m <= APART else min(m, kinds * (largest + 1))
        self.rows = a + jobs + BLOCKED + RUNS_SEEN + nodes + kinds + 1
        self.edges = 6 * a + 3 * (jobs + BLOCKED) + 2 * (nodes + kinds + RUNS_SEEN) + 3 * a * m
        self.edges += min(gpus, RUNS_SEEN * m)


def list_candidates(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, f: Formula) -> Int:
    """Write the candidates, and return how many there are: none if no waiting job fits.

    To wait is the first, if something runs, whose end will change the state; else it is left out.
    """
    _list_jobs(jobs, cluster, state, s, f)
    if s.most[LISTED] == 0:
        return 0
    k: Int = 0
    if state.count[RUNNING] > 0:
        s.place[0], s.cost[0], s.of[0] = WAIT, 0.0, -1
        for node in range(len(cluster.rack)):
            s.take[0, node] = 0
        k = 1
    for i in range(s.most[LISTED]):
        job = s.queue[s.listed[i]]
        begin: Int = k
        for asked in range(s.most[ASKED]):  # ours first: of equal allocations it is the one that stays
            choose(CLOSEST - asked, jobs.gpus[job], cluster, state.free, s.take[k])
            if _is_new(begin, k, s):
                s.place[k], s.of[k], s.cost[k] = s.listed[i], i, communication(cluster, s.take[k])
                k += 1
            if jobs.gpus[job] == 1 and k > begin + 1:
                break
    return k


def _is_new(begin: Int, k: Int, s: CandidateScratch) -> bool:
    nodes: Int = s.take.shape[1]
    for other in range(begin, k):
        node: Int = 0
        while node < nodes and s.take[other, node] == s.take[k, node]:
            node += 1
        if node == nodes:
            return False
    return True


def _list_jobs(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, f: Formula) -> None:
    """Write the places in the queue of the first jobs by the rule, before those that it has wait for closer GPUs.

    Of equal ones the first submitted.
    """
    idle: Int = total(state.free)
    fit: Int = 0
    not_fit: Int = 0
    now = state.clock[NOW]
    for need in range(idle + 1):
        s.known[need] = UNKNOWN
    for at in range(s.waiting):
        job = s.queue[at]
        need = jobs.gpus[job]
        key = key_of(jobs, job, now, f)
        if need > idle:
            not_fit = sort_in(jobs, s, at, key, s.blocked, s.least, not_fit, False)
            continue
        if isnan(s.known[need]):
            choose(CLOSEST, need, cluster, state.free, s.free)
            s.known[need] = communication(cluster, s.free)
        if state.count[RUNNING] > 0 and hope(jobs, job, s.known[need], now, f) > 0.0:
            key += LATER
        fit = sort_in(jobs, s, at, key, s.listed, s.key, fit, False)
    for i in range(fit):
        if s.key[i] > LATER / 2:
            s.key[i] -= LATER
    s.most[LISTED], s.most[HELD_UP] = fit, not_fit


def sort_in(
    jobs: Jobs, s: CandidateScratch, at: Int, key: Float, listed: Ints, keys: Floats, count: Int, every: bint
) -> Int:
    """Put a job to its place among those listed, one of each kind or `every`, and return how many there are."""
    most: Int = len(listed)
    if count == most and key >= keys[count - 1]:
        return count
    place: Int = count
    while place > 0 and keys[place - 1] >= key:
        place -= 1
        if not every and keys[place] == key and _alike(jobs, s.queue[listed[place]], s.queue[at]):
            return count
    while place < count and keys[place] <= key:  # behind its equals
        place += 1
    count = min(count + 1, most)
    for i in range(count - 1, place, -1):
        listed[i], keys[i] = listed[i - 1], keys[i - 1]
    listed[place], keys[place] = at, key
    return count


def _alike(jobs: Jobs, a: Int, b: Int) -> bool:
    return (
        jobs.expected[a] == jobs.expected[b]
        and jobs.gpus[a] == jobs.gpus[b]
        and jobs.intensity[a] == jobs.intensity[b]
    )


def remaining(jobs: Jobs, state: State, job: Int) -> Float:
    """Return in how many seconds a running job is expected to end; one that should have ended, in half its age."""
    age: Float = state.clock[NOW] - state.start[job]
    left: Float = jobs.expected[job] * (1.0 + jobs.intensity[job] * state.cost[job]) - age
    return left if left > 0.0 else 0.5 * age
