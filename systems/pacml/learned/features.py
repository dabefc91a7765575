"""What a decision looks like to the network: a row for rejecting the job, and one for each block that could take it.

The cluster is a graph of servers, blocks and candidates. A block hears from its servers when the last is free; a
candidate hears from every block that shares a server with it and would be free before it ends. The sum over blocks of
one-hot messages, by class of block and by how soon it is available, is a table of counts, which the network's first
layer turns into a sum of learned ones. Candidates that leave the same table behind are one.

Beside these counts a row holds what the jobs so far tell about those to come, the job, and the candidate itself.
"""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from cython.cimports.libc.math import ceil, log1p, log2, sqrt

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Sorting

from .tables import DEGREES, Clusters

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Ints

    from .tables import BlockTables, TypeTimes, place, start

LEVELS = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25])
"""Within how many turns a block is available, see `Past.turn`."""

N_LEVELS = len(LEVELS)
CLASSES = 2 * len(DEGREES)
"""Blocks of each degree, and those of a fast shape among them."""

PER_SHAPE = declare(Int, 24)
"""Candidates of a shape that are looked at: those whose servers are in the fewest free blocks."""

MOST = 512
"""Candidates of a decision at most, and to reject the job is one."""

EPSILON = declare(Float, 1e-9)

CONTEXT = (
    *(f"needs_{step}" for step in DEGREES), "beta", "spread", "load", "variety", "efficiency_4", "efficiency_16",
    "busy", "size",
)  # fmt: skip
"""What a network sees of the past, of the servers that are busy, and of the size of the cluster."""

JOB = ("beta", "sequential", "acceptable")
CANDIDATE = ("taken", "degree", "turns", "area", "slack", "efficiency", "fast", "wasted")
WIDTH = 2 * CLASSES * N_LEVELS + len(CONTEXT) + len(JOB) + len(CANDIDATE)
"""Features of a row."""


@final
@cclass
class Past:
    """Sums over the jobs that have arrived.

    Attributes:
        steps, needs: degrees as speed-ups, and how many jobs need no more than each, float64 (degrees,).
        jobs, beta, beta2, work, work2: how many, and of beta, its square, the sequential time and its square.
        efficient4, efficient16, gap: of efficiency at degrees 4 and 16, and time since the job before.
    """

    def __init__(self) -> None:
        self.steps, self.needs = np.array(DEGREES, np.float64), np.zeros(len(DEGREES))
        self.jobs = self.beta = self.beta2 = self.work = self.work2 = 0.0
        self.efficient4 = self.efficient16 = self.gap = 0.0

    def add(self, beta: Float, sequential: Float, efficient4: Float, efficient16: Float, gap: Float) -> None:
        """Add a job that arrives `gap` after the one before."""
        for k in range(len(self.needs)):
            if 1.0 / beta <= self.steps[k] + EPSILON:
                self.needs[k] += 1
        self.jobs += 1
        self.beta += beta
        self.beta2 += beta * beta
        self.work += sequential
        self.work2 += sequential * sequential
        self.efficient4 += efficient4
        self.efficient16 += efficient16
        self.gap += gap

    def turn(self, servers: Int) -> Float:
        """Return the mean time between arrivals, scaled to 32 servers: a *turn*, the unit of time of all features.

        After the first job alone, which tells none, such that the load would be 1.
        """
        if self.jobs < 1.5 or self.gap <= 0:
            return self.work / self.jobs / 32.0
        return self.gap / (self.jobs - 1.0) * servers / 32.0


@final
@cclass
class DegreeDecision:
    """A cluster of b blocks and n servers, and the decision on the job that arrives.

    Attributes:
        tables, at, published: its arrays; who holds its servers; whether candidates are degrees, for which published
            first fit finds a block for ops of each size.
        past, times, kind, beta, now, turn: jobs so far; types; of the job, type and acceptable share of its sequential
            time; time, and the unit of it, see `Past.turn`.
        level: of each block, the first of `levels`, LEVELS, that is no sooner than it is available, int64 (b,).
        count, taken: blocks available by class and level, and what a candidate takes of them, (CLASSES * N_LEVELS,).
        left: what each candidate leaves, int64 (MOST, CLASSES * N_LEVELS).
        row: features of the candidates, float32 (MOST, WIDTH).
        choice: of each candidate, int64 (MOST,): a block, or a degree if `published`; -1 to reject the job.
        block, time: its block, int64 (MOST,), the largest one if there are several, and its completion time.
        allowed, per, found, spoils, within: blocks that would do, (b,); of each shape how many; those of one shape;
            the free blocks that each would spoil; of each server, the free blocks that hold it, (n,).
        own, density, features: level of each server, (n,), what a row says of each count, and behind the counts.
    """

    def __init__(self, tables: BlockTables, *, choose: bool = True) -> None:
        b: Int = len(tables.size)
        self.tables, self.at, self.published, self.past = tables, Clusters(tables), not choose, Past()
        counts, told, longs = CLASSES * N_LEVELS, len(CONTEXT) + len(JOB) + len(CANDIDATE), (b, b, MOST, MOST, tables.n)
        self.level, self.found, self.choice, self.block, self.own = (np.zeros(k, np.int64) for k in longs)
        self.count, self.taken, self.per = (np.zeros(k, np.int64) for k in (counts, counts, len(tables.fast)))
        self.left, self.row = np.zeros((MOST, counts), np.int64), np.zeros((MOST, WIDTH), np.float32)
        self.time, self.within, self.density, self.features = (np.zeros(k) for k in (MOST, tables.n, b + 1, told))
        self.levels, self.allowed, self.spoils = LEVELS, np.zeros(b, np.uint8), Sorting(b)
        for i in range(b + 1):
            self.density[i] = 0.3 * log1p(i * (32.0 / tables.n))

    def begin(self, times: TypeTimes) -> None:
        """Empty the cluster, on which jobs of some types will arrive."""
        self.past, self.times, self.now = Past(), times, 0.0
        self.at.ends[0, :] = -1.0

    def arrive(self, kind: Int, beta: Float, gap: Float) -> int:
        """Let a job arrive `gap` after the one before; return how many candidates there are: 0 rejects it."""
        self.at.check(self.times, kind, 0)
        self.now, self.kind, self.beta = self.now + gap, kind, beta
        four, sixteen = self.times.efficiency[kind, 0], self.times.efficiency[kind, 1]
        self.past.add(beta, self.times.sequential[kind], four, sixteen, gap)
        self.turn = self.past.turn(self.tables.n)
        return candidates(self)

    def look(
        self, end: FloatArray, now: Float, turn: Float, times: TypeTimes, kind: Int, beta: Float, past: Past
    ) -> int:
        """Do the same for a job that arrives where servers are free at `end`, float64 (n,), after a past with it."""
        self.at.check(times, kind, 0)
        if len(end) != self.tables.n:
            raise ValueError(f"{len(end)} servers, not {self.tables.n}")
        np.asarray(self.at.ends)[0] = end
        self.now, self.turn, self.times, self.kind, self.beta, self.past = now, turn, times, kind, beta, past
        return candidates(self)

    def write(self, k: Int) -> None:
        """Write the rows of the first k candidates."""
        if self.times is None or not 0 <= k <= len(self.choice):
            raise ValueError(f"{k} candidates of {len(self.choice)}")
        with nogil:
            _rows(self, k)

    def accept(self, candidate: Int) -> float:
        """Let the job hold the servers that a candidate gives it, and return until when."""
        if self.times is None or not 0 < candidate < len(self.choice):
            raise ValueError(f"{candidate} is no candidate that takes servers")
        return start(self.at, 0, self.now, self.choice[candidate], self.times, self.kind, self.published)


def level_of(d: DegreeDecision, turns: Float) -> Int:
    """Return the first level that is no sooner, or their number."""
    at: Int = 0
    while at < len(d.levels) and turns > d.levels[at] + EPSILON:
        at += 1
    return at


def candidates(d: DegreeDecision) -> Int:
    """Note the candidates and what they leave, and return their number; candidate 0 rejects the job."""
    limit = d.beta * d.times.sequential[d.kind]
    see(d)
    d.choice[0] = d.block[0] = -1
    k: Int = 1
    if d.published:
        for q in range(len(d.at.placed)):
            time = place(d.at, d.times, d.kind, q)
            if time <= limit:
                d.at.mark += 1
                for j in range(len(d.at.placed)):
                    if d.at.placed[j] >= 0:
                        _take(d, d.at.placed[j], level_of(d, time / d.turn))
                        d.block[k] = d.at.placed[j]
                k += _leave(d, k, q, time)
        return k
    _allow(d, limit)
    for b in range(len(d.allowed)):
        if d.allowed[b] and k < len(d.choice):
            time = d.times.jct[d.kind, d.tables.shape[b]]
            d.at.mark += 1
            _take(d, b, level_of(d, time / d.turn))
            d.block[k] = b
            k += _leave(d, k, b, time)
    return k


def see(d: DegreeDecision) -> None:
    """Find when each block is available, and count them by class and level, as candidate 0 leaves them."""
    levels: Int = len(d.levels)
    half: Int = len(d.count) // 2
    d.count[:] = 0
    # a block is available with the last of its servers, and so are levels
    for s in range(d.tables.n):
        d.own[s] = level_of(d, max(0.0, d.at.ends[0, s] - d.now) / d.turn)
    for b in range(len(d.level)):
        level: Int = 0
        for i in range(d.tables.size[b]):
            level = max(level, d.own[d.tables.servers[b, i]])
        d.level[b], d.at.free[b] = level, level == 0
        if level < levels:
            for c in range(1 + d.tables.fast[d.tables.shape[b]]):
                d.count[c * half + d.tables.degree[b] * levels + level] += 1
    _accumulate(d.count, levels)
    for c in range(len(d.count)):
        d.left[0, c] = d.count[c]


def _accumulate(count: Ints, levels: Int) -> None:
    for q in range(len(count) // levels):
        for c in range(q * levels + 1, (q + 1) * levels):
            count[c] += count[c - 1]


def _allow(d: DegreeDecision, limit: Float) -> None:
    """Find which blocks are free and would do; of shapes with many, those that spoil the fewest free blocks."""
    d.per[:] = 0
    d.within[:] = 0.0
    for b in range(len(d.level)):
        s = d.tables.shape[b]
        d.allowed[b] = d.level[b] == 0 and d.times.jct[d.kind, s] <= limit
        d.per[s] += d.allowed[b]
        if d.level[b] == 0:
            for i in range(d.tables.size[b]):
                d.within[d.tables.servers[b, i]] += 1
    for s in range(len(d.per)):
        if d.per[s] > PER_SHAPE:
            _spare(d, s)


def _spare(d: DegreeDecision, shape: Int) -> None:
    k: Int = 0
    for b in range(len(d.level)):
        if d.allowed[b] and d.tables.shape[b] == shape:
            d.found[k], d.spoils.keys[k] = b, 0.0
            for i in range(d.tables.size[b]):
                d.spoils.keys[k] += d.within[d.tables.servers[b, i]]
            k += 1
    d.spoils.sort(k, True)
    for i in range(PER_SHAPE, k):
        d.allowed[d.found[d.spoils.order[i]]] = False


def _take(d: DegreeDecision, block: Int, until: Int) -> None:
    """Count what a candidate takes: blocks that share a server with it and are available before level `until`."""
    levels: Int = len(d.levels)
    half: Int = len(d.taken) // 2
    for i in range(d.tables.size[block]):
        s = d.tables.servers[block, i]
        for j in range(d.tables.first[s], d.tables.first[s + 1]):
            b = d.tables.holds[j]
            if d.at.stamp[b] == d.at.mark:
                continue
            d.at.stamp[b] = d.at.mark
            if d.level[b] < until:
                for c in range(1 + d.tables.fast[d.tables.shape[b]]):
                    at = c * half + d.tables.degree[b] * levels
                    d.taken[at + d.level[b]] += 1
                    if until < levels:
                        d.taken[at + until] -= 1


def _leave(d: DegreeDecision, k: Int, choice: Int, time: Float) -> bint:
    """Note a candidate, and return whether no block before has the same shape and leaves the same."""
    d.choice[k], d.time[k] = choice, time
    _accumulate(d.taken, len(d.levels))
    for c in range(len(d.count)):
        d.left[k, c] = d.count[c] - d.taken[c]
    d.taken[:] = 0
    for i in range(k if d.published else 1, k):
        if d.tables.shape[d.block[i]] == d.tables.shape[d.block[k]]:
            at: Int = 0
            while at < len(d.count) and d.left[i, at] == d.left[k, at]:
                at += 1
            if at == len(d.count):
                return False
    return True


def _rows(d: DegreeDecision, k: Int) -> None:
    """Write the features: counts by density and presence, then what is known of the past, the job, the candidate."""
    n, at = d.past.jobs, len(d.past.needs)
    for c in range(len(d.features)):
        d.features[c] = (d.past.needs[c] + 0.5) / (n + 1.0) if c < at else 0.0
    busy: Int = 0
    for s in range(d.tables.n):
        busy += d.at.ends[0, s] > d.now
    beta, work, unit, sequential = d.past.beta / n, d.past.work / n, 32.0 * d.turn, d.times.sequential[d.kind]
    d.features[at], d.features[at + 1] = beta, 2 * sqrt(max(d.past.beta2 / n - beta * beta, 0.0))
    d.features[at + 2] = min(work / unit, 3.0)
    d.features[at + 3] = sqrt(max(d.past.work2 / n - work * work, 0.0)) / work
    d.features[at + 4], d.features[at + 5] = d.past.efficient4 / n, d.past.efficient16 / n
    d.features[at + 6], d.features[at + 7] = 1.0 * busy / d.tables.n, log2(d.tables.n / 32.0) / 4
    limit = d.beta * sequential
    d.features[at + 8], d.features[at + 9] = d.beta, log1p(sequential / unit)
    d.features[at + 10] = 0.3 * log1p(limit / d.turn)
    at += 11
    for i in range(k):
        b = d.block[i]
        if b >= 0:
            time, size = d.time[i], d.tables.size[b]
            d.features[at], d.features[at + 1], d.features[at + 2] = 1.0, log2(size) / 4, 0.3 * log1p(time / d.turn)
            d.features[at + 3], d.features[at + 4] = time * size / unit, time / limit
            d.features[at + 5], d.features[at + 6] = sequential / (time * size), d.tables.fast[d.tables.shape[b]]
            d.features[at + 7] = ceil(time / d.turn - EPSILON) - time / d.turn
        for c in range(len(d.count)):
            d.row[i, 2 * c], d.row[i, 2 * c + 1] = d.density[d.left[i, c]], d.left[i, c] > 0
        behind: Int = 2 * len(d.count)
        for c in range(len(d.features)):
            d.row[i, behind + c] = d.features[c]
