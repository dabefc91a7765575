"""What may be done now: each waiting job that fits, on each allocation that some allocator gives it; and to wait."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, declare, final
from cython.cimports.libc.math import isnan

from gangplan.simulator.gangs.arrays import Arrays, GpuRacks, Jobs, State
from gangplan.simulator.gangs.step import least_cost

from ..graph.compiled import CompiledNetwork, room
from .schema import SCHEMA

if not cython.compiled:
    from gangplan.simulator.gangs.allocate import CLOSEST, choose
    from gangplan.simulator.gangs.arrays import NOW, RUNNING
    from gangplan.simulator.gangs.formula import Formula, hope, key_of
    from gangplan.simulator.gangs.step import communication, total
    from gangplan.solvers.native import Float, Floats, Int, Ints

    WAIT = -1
    """The place in the queue of the candidate that starts nobody."""
    IN_SIGHT, BLOCKED, RUNS_SEEN = 128, 16, 64
    """Waiting jobs that the network sees, those of them that do not fit, both the first by the rule; running jobs."""
    APART, STEPS = 64, 8
    """Racks up to which each is told apart, and nodes likewise; beyond that racks are by so many steps of their idle
    nodes, and of their idle GPUs elsewhere."""

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
    """A decision on one cluster, and room to work in.

    Attributes:
        jobs, cluster, state: what there is to decide.
        graph: of it.
        place, of: where each candidate's job is in the queue, or `WAIT`, and in `listed`, int64 (A,).
        take: GPUs of each node that it gets, int64 (A, m).
        cost, work: of communication there, and GPU seconds that the job would take, float64 (A,).
        score: of each candidate, float32 (A,).
        listed, key: places in the queue of the candidates' jobs, by their keys, and these, (JOBS,).
        blocked, least: the same of jobs that do not fit, (BLOCKED,).
        seen, queue, early: places in the queue of the jobs in sight, these, and their keys, (IN_SIGHT,).
        runs: running jobs that are seen: the next to end, int64 (RUNS_SEEN,).
        ends: when they are expected to end, seconds from now, then infinite, float64 (RUNS_SEEN,).
        idle: GPUs of each node now and after each of these, int64 (SOON + 1, m).
        known: the cost for so many GPUs placed closest now and after each of these, nan if not worked out,
            infinite if they do not fit; float64 (SOON + 1, GPUs + 1).
        ideal: the cost for so many GPUs on the empty cluster, float64 (GPUs + 1,).
        last, free: when the last job of each node is expected to end, seconds from now; of use to allocators, (m,).
        group: the kind of each rack, then of each node, among those that are told apart, int64 (racks + m,).
        asked, soon: see `PLACES` and `SOON`.
        fit, not_fit, waiting, running: how many there are of `listed`, `blocked`, `queue` and `runs`.
        odd, at_once: what `strange` says, and whether waiting makes no sense.
        arrived, mean, mean_work, mean_gpus: jobs that were looked at, their mean expected length, s, work, GPU s, GPUs.
        deviation, surprise: of the logarithm of a length; of that from the expected one.
        load, dearness: work a second of all GPUs; mean logarithm of the slowdown on an empty cluster.
        unseen: jobs that wait and are not in the state.
        node_size, rack_size: GPUs of the largest node and rack.
        gain, better_in: how much earlier a job would end that waits for the best of the next ends, and when that is.
        held, need, shadow, spare: of the job with the least work that does not fit: its work, infinite if there is
            none, its GPUs, when it will fit, and what is spare then.
        now, whole_now: idle GPUs and wholly idle nodes.
        left, whole, largest, best, broken: idle GPUs, wholly idle nodes, and the idle GPUs of the best node, of the
            best rack and of broken nodes, where that was looked at last.
        racks, nodes: how many kinds of them are told apart.
    """

    def __init__(self, cluster: GpuRacks) -> None:
        m, gpus, racks, ints = len(cluster.rack), len(cluster.node), len(cluster.begin) - 1, np.int64
        size = (m > SMALL) + (m > MEDIUM)
        jobs, soon, self.asked = JOBS[size], SOON[size], PLACES[size]
        self.soon = soon
        a, largest = jobs * self.asked + 1, int(np.diff(cluster.first).max(initial=0))
        known = max((soon + 1) * (gpus + 1), min(racks, SMALL) * (largest + 1), SMALL, m)
        own: dict[str, Any] = {
            "place": np.zeros(a, ints), "of": np.zeros(a, ints), "take": np.zeros((a, m), ints), "cost": np.zeros(a),
            "work": np.zeros(a), "score": np.zeros(a, np.float32), "listed": np.zeros(jobs, ints),
            "key": np.zeros(jobs), "blocked": np.zeros(BLOCKED, ints), "least": np.zeros(BLOCKED),
            "seen": np.zeros(IN_SIGHT, ints), "queue": np.zeros(IN_SIGHT, ints), "early": np.zeros(IN_SIGHT),
            "runs": np.zeros(RUNS_SEEN, ints), "ends": np.zeros(RUNS_SEEN), "idle": np.zeros((soon + 1, m), ints),
            "known": np.zeros(known), "ideal": least_cost(cluster), "last": np.zeros(m), "free": np.zeros(m, ints),
            "group": np.zeros(racks + m, ints),
        }  # fmt: skip
        vars(self).update(own)
        self.place, self.of, self.take, self.cost, self.work, self.score, self.listed, self.key, *rest = own.values()
        self.blocked, self.least, self.seen, self.queue, self.early, self.runs, self.ends, self.idle, *rest = rest
        self.known, self.ideal, self.last, self.free, self.group = rest
        kinds = racks if racks <= APART else STEPS * STEPS
        nodes = m if m <= APART else min(m, kinds * (largest + 1))
        edges = 6 * a + 3 * (jobs + BLOCKED) + 2 * (nodes + kinds + RUNS_SEEN) + 3 * a * m
        rows = a + jobs + BLOCKED + RUNS_SEEN + nodes + kinds + 1
        self.graph = g = room(SCHEMA, rows, edges + min(gpus, RUNS_SEEN * m))
        self.x, self.kind, self.relation = g.x, g.kind, g.relation
        self.source, self.target, self.weight = g.source, g.target, g.weight
        self.fit = self.not_fit = self.waiting = self.running = self.at_once = self.arrived = self.need = self.spare = 0
        self.now = self.whole_now = self.left = self.whole = self.largest = self.best = self.broken = self.odd = 0
        self.mean = self.mean_work = self.mean_gpus = self.deviation = self.surprise = self.load = self.dearness = 0.0
        self.node_size = self.rack_size = self.unseen = self.gain = self.better_in = self.held = self.shadow = 0.0
        self.racks = self.nodes = 0

    def enter(self, jobs: Jobs, cluster: GpuRacks, state: State, net: CompiledNetwork | None = None) -> None:
        """Go over to another state; raise `ValueError` where it, the cluster or the network are of other sizes."""
        state.require(jobs, cluster)
        m, gpus, racks = len(cluster.rack), len(cluster.node), len(cluster.begin) - 1
        if (len(self.last), len(self.ideal), len(self.group)) != (m, gpus + 1, racks + m):
            raise ValueError(f"room for {len(self.last)} nodes, {len(self.ideal) - 1} GPUs is not for {m} and {gpus}")
        for job in range(len(jobs.gpus)):
            if not 0 <= jobs.gpus[job] <= gpus:
                raise ValueError(f"gpus[{job}]: {jobs.gpus[job]} are not from 0 to the {gpus} of the cluster")
        self.jobs, self.cluster, self.state = jobs, cluster, state
        if net is not None:
            self.graph.make_room(net)


def list_candidates(s: CandidateScratch, f: Formula) -> Int:
    """Write the candidates, and return how many there are: none if no waiting job fits.

    To wait is the first, if something runs, whose end will change the state; else it is left out.
    """
    _list_jobs(s, f)
    if s.fit == 0:
        return 0
    k: Int = 0
    if s.state.count[RUNNING] > 0:
        s.place[0], s.cost[0], s.of[0] = WAIT, 0.0, -1
        s.take[0, :] = 0
        k = 1
    for i in range(s.fit):
        job = s.queue[s.listed[i]]
        begin: Int = k
        for asked in range(s.asked):  # ours first: of equal allocations it is the one that stays
            choose(CLOSEST - asked, s.jobs.gpus[job], s.cluster, s.state.free, s.take[k])
            if _is_new(s, begin, k):
                s.place[k], s.of[k], s.cost[k] = s.listed[i], i, communication(s.cluster, s.take[k])
                k += 1
            if s.jobs.gpus[job] == 1 and k > begin + 1:
                break
    return k


def _is_new(s: CandidateScratch, begin: Int, k: Int) -> bool:
    nodes: Int = s.take.shape[1]
    for other in range(begin, k):
        node: Int = 0
        while node < nodes and s.take[other, node] == s.take[k, node]:
            node += 1
        if node == nodes:
            return False
    return True


def _list_jobs(s: CandidateScratch, f: Formula) -> None:
    """Write the places in the queue of the first jobs by the rule, before those that it has wait for closer GPUs.

    Of equal ones the first submitted.
    """
    s.fit = s.not_fit = 0
    idle, now = total(s.state.free), s.state.clock[NOW]
    s.known[: idle + 1] = UNKNOWN
    for at in range(s.waiting):
        job = s.queue[at]
        need = s.jobs.gpus[job]
        key = key_of(s.jobs, job, now, f)
        if need > idle:
            s.not_fit = sort_in(s, at, key, s.blocked, s.least, s.not_fit, False)
            continue
        if isnan(s.known[need]):
            choose(CLOSEST, need, s.cluster, s.state.free, s.free)
            s.known[need] = communication(s.cluster, s.free)
        if s.state.count[RUNNING] > 0 and hope(s.jobs, job, s.known[need], now, f) > 0.0:
            key += LATER
        s.fit = sort_in(s, at, key, s.listed, s.key, s.fit, False)
    for i in range(s.fit):
        if s.key[i] > LATER / 2:
            s.key[i] -= LATER


def sort_in(s: CandidateScratch, at: Int, key: Float, listed: Ints, keys: Floats, count: Int, every: bint) -> Int:
    """Put a job to its place among those listed, one of each kind or `every`, and return how many there are."""
    most, place = len(listed), count
    if count == most and key >= keys[count - 1]:
        return count
    while place > 0 and keys[place - 1] >= key:
        place -= 1
        if not every and keys[place] == key:
            a, b = s.queue[listed[place]], s.queue[at]
            alike: bint = s.jobs.expected[a] == s.jobs.expected[b] and s.jobs.gpus[a] == s.jobs.gpus[b]
            if alike and s.jobs.intensity[a] == s.jobs.intensity[b]:
                return count
    while place < count and keys[place] <= key:  # behind its equals
        place += 1
    count = min(count + 1, most)
    for i in range(count - 1, place, -1):
        listed[i], keys[i] = listed[i - 1], keys[i - 1]
    listed[place], keys[place] = at, key
    return count


def remaining(jobs: Jobs, state: State, job: Int) -> Float:
    """Return in how many seconds a running job is expected to end; one that should have ended, in half its age."""
    age: Float = state.clock[NOW] - state.start[job]
    left: Float = jobs.expected[job] * (1.0 + jobs.intensity[job] * state.cost[job]) - age
    return left if left > 0.0 else 0.5 * age
