"""Compiled: what the candidates of a decision are worth, by a table, by playing on, and by plans of sampled futures."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cast, cclass, declare, final, nogil
from cython.cimports.libc.math import ceil
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Random, Sorting

from .features import LEVELS, MOST, DegreeDecision
from .tables import DEGREES

if not cython.compiled:
    from gangplan.solvers.native import Float, Floats, Floats2, Int, Ints2, Word

    from .features import candidates, see
    from .tables import BlockTables, TypeTimes, start

COUNTED = np.searchsorted(LEVELS, [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 18])
"""Levels that count: not what is free now, for the next job comes a turn later, nor what is far; few, to learn fast."""
STEPS = np.array([0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7])
"""The column for a number of blocks; from the last on there is one for all."""
SHAPE = len(DEGREES), len(COUNTED), 8
"""Of a table: degrees, levels, columns."""
GAMMA = 0.98
"""What a job accepted is worth, of one accepted an arrival before."""
LAMBDA = declare(Float, 0.7)
"""How much of it each state before that is told of."""

TRIED, PLAYED = 6, 24
"""Rows played on, and futures of each."""
VOTE = declare(Float, 0.2)
"""Of what a plan says a row is worth: plans differ by whole jobs where rollouts differ by tenths."""

KEPT, FUTURES, HORIZON = 20, 16, 24
"""Partial plans kept, futures of each decision if nobody says else, jobs in a future."""
PRICE = declare(Float, 0.005)
"""Of a held server at an arrival, in jobs, see `gangplan.systems.pacml.plans`."""
SPARE = declare(Int, 4)
"""Of so many times `KEPT` duplicates are dropped."""
TIE = declare(Float, 1e-6)
"""Ties are broken at random: of one parent's children the first would crowd out all others."""
EPSILON = declare(Float, 1e-9)
FAR = declare(Float, 1e9)
"""Arrivals until which it does not matter when."""
NEVER = declare(Float, float("inf"))


@final
@cclass
class Plans:
    """Partial plans of futures, see `.hindsight`, on one cluster of n servers, 64 at most, and b blocks.

    Attributes:
        tables, times, random: of the cluster, of job types, and what futures are drawn by.
        futures, kind, beta: how many, of what jobs they are drawn: type and acceptable share of its sequential time.
        drawn: jobs of one future, int64 (HORIZON,).
        mask: servers of each block as bits, uint64 (1, b).
        start, block: arrival at which each server is free, int64 (n,); of each candidate, int64 (b + 1,).
        ways, until, gain: blocks that a job may have, arrival at which it ends there, what that is worth, (b,).
        held: arrival at which each server is free in each plan, now and next, int64 (2, KEPT, n).
        done, root: jobs accepted and the row begun with, int64 (2, KEPT).
        score, best: of the ways to go on, float64 (KEPT * (b + 1),), and their order.
        parent, chosen: of the ways to go on: the partial plan and the place among `ways`, or -1; int64 alike.
        value: of each candidate in one future, float64 (MOST,).
    """

    def __init__(self, tables: BlockTables, times: TypeTimes, random: Random, futures: Int = FUTURES) -> None:
        if tables.n > 64 or len(tables.fast) != times.jct.shape[1]:
            raise ValueError(f"{times.jct.shape[1]} shapes on {tables.n} servers, not 64 at most")
        self.tables, self.times, self.random, self.futures = tables, times, random, futures
        b: Int = len(tables.size)
        room, servers = KEPT * (b + 1), np.asarray(tables.servers)
        bits = np.uint64(1) << np.maximum(servers, 0).astype(np.uint64)
        self.mask, self.block = np.where(servers < 0, np.uint64(0), bits).sum(axis=1)[None], np.zeros(b + 1, np.int64)
        self.drawn, self.start = np.zeros(HORIZON, np.int64), np.zeros(tables.n, np.int64)
        self.ways, self.until, self.gain = np.zeros(b, np.int64), np.zeros(b, np.int64), np.zeros(b)
        self.held, self.value = np.zeros((2, KEPT, tables.n), np.int64), np.zeros(MOST)
        self.done, self.root = np.zeros((2, 2, KEPT), np.int64)
        self.score, self.best = np.zeros(room), Sorting(room)
        self.parent, self.chosen = np.zeros((2, room), np.int64)

    def draw_from(self, kind: NDArray[np.integer], beta: FloatArray) -> None:
        """Draw futures from jobs of these types and shares, integers (p,) and float64 (p,), from now on."""
        if not 0 < len(kind) == len(beta) or kind.min() < 0 or kind.max() >= len(self.times.sequential):
            raise ValueError(f"{len(beta)} shares are not of {len(kind)} jobs of {len(self.times.sequential)} types")
        self.kind, self.beta = np.array(kind, np.int64), np.array(beta)

    def values(self, end: FloatArray, now: Float, gap: Float, kind: Int, block: NDArray[np.int64]) -> FloatArray:
        """Return the jobs accepted after each candidate, in the mean over futures, float64 (k,).

        Args:
            end: when each server is free, float64 (n,).
            gap: between arrivals.
            kind: type of the job.
            block: of each candidate, int64 (k,); the first rejects the job.
        """
        blocks, k = len(self.ways), len(block)
        if len(end) != self.tables.n or not 0 < k <= min(blocks + 1, MOST) or (block[1:] < 0).any():
            raise ValueError(f"{k} candidates of {blocks} blocks on {len(end)} servers")
        if block.max() >= blocks or not 0 <= kind < len(self.times.sequential):
            raise ValueError(f"type {kind} on block {block.max()} of {blocks}")
        out: Floats = np.zeros(k)
        left: Floats = end - now
        np.asarray(self.block)[:k] = block
        with nogil:
            for s in range(self.tables.n):
                self.start[s] = _arrivals(left[s], gap)
            _hindsight(self, k, gap, kind, out)
        return np.asarray(out)


@final
@cclass
class Teacher:
    """Who knows the distribution in one cluster.

    Attributes:
        table, counted, column: what free blocks are worth, float64 `SHAPE`; its levels and columns.
        kind, beta: jobs of which futures are drawn, as of `Plans`; none to go by the table alone, which is 500 times
            faster.
        planned: whether futures are planned; else played on by the table.
        published: whether candidates are degrees, see `DegreeDecision`.
        plans, ahead, random: in which and by which they are.
        drawn, played, found: jobs of `PLAYED` futures, what comes of the rows that are played on, what rows are worth.
        best: the order of the rows.
    """

    def __init__(
        self, tables: BlockTables, times: TypeTimes, table: FloatArray, kind: Any = (), beta: Any = (), *,
        planned: bool = False, choose: bool = True, seed: int = 0,
    ) -> None:  # fmt: skip
        if table.shape != SHAPE:
            raise ValueError(f"{table.shape} is no table of {SHAPE}")
        self.table, self.counted, self.column = np.array(table), COUNTED, STEPS
        self.futures, self.discount, self.random = PLAYED, GAMMA, Random(seed)
        self.planned, self.published = planned and len(kind) > 0, not choose
        self.drawn, self.played, self.found = np.zeros(PLAYED * HORIZON, np.int64), np.zeros(TRIED), np.zeros(MOST)
        self.ahead, self.best = DegreeDecision(tables, choose=choose), Sorting(MOST)
        self.ahead.begin(times)
        self.kind, self.beta = np.array(kind, np.int64), np.array(beta, np.float64)
        if len(kind):
            self.plans = Plans(tables, times, self.random)
            self.plans.draw_from(kind, beta)

    def judge(self, d: DegreeDecision, k: Int, out: Floats) -> None:
        """Write what each of the k candidates of a decision is worth to the teacher."""
        mine: bint = d.published == self.published and d.tables is self.ahead.tables
        if not mine or not 0 <= k <= min(len(d.level) + 1, MOST, len(out)):
            raise ValueError(f"{k} candidates of {len(out)} on {d.tables.n} servers, for a teacher of others")
        with nogil:
            _weigh(self, d, k, out)
            if k > 1 and len(self.kind) > 0 and not self.planned:
                _look_ahead(self, d, k, out)
            elif k > 1 and len(self.kind) > 0:
                gap = d.turn * 32 / d.tables.n
                for s in range(d.tables.n):
                    self.plans.start[s] = _arrivals(d.at.ends[0, s] - d.now, gap)
                for i in range(k):
                    self.plans.block[i] = d.block[i]
                _hindsight(self.plans, k, gap, d.kind, out)
                for i in range(k):
                    out[i] *= VOTE


def add_equations(columns: Ints2, reward: Floats, a: Floats2, b: Floats) -> None:
    """Add an episode to the equations of a table's entries, a and b; the last unknown is a constant.

    Args:
        columns: of each state its entries, int64 (n, width).
        reward: float64 (n,).
    """
    last: Int = len(b) - 1
    inside: bint = np.min(columns, initial=0) >= 0 and np.max(columns, initial=0) < last
    if not inside or not a.shape[0] == a.shape[1] == last + 1 or len(columns) != len(reward):
        raise ValueError(f"{len(columns)} states of {len(reward)} are not of {a.shape[0]} equations of {len(b)}")
    trace: Floats = np.zeros(len(b))
    discount: Float = GAMMA
    with nogil:
        for i in range(len(reward) - 1):
            for k in range(last + 1):
                trace[k] *= discount * LAMBDA
            for j in range(columns.shape[1]):
                trace[columns[i, j]] += 1.0
            trace[last] += 1.0
            for k in range(last + 1):
                z = trace[k]
                if z >= 1e-6:
                    for j in range(columns.shape[1]):
                        a[k, columns[i, j]] += z
                    for j in range(columns.shape[1]):
                        a[k, columns[i + 1, j]] -= discount * z
                    a[k, last] += z * (1 - discount)
                    b[k] += z * reward[i + 1]


def _worth(t: Teacher, d: DegreeDecision, i: Int) -> Float:
    """Return what a state is worth by the numbers of blocks available that a candidate leaves."""
    total: Float = 0.0
    levels, last = len(d.levels), len(t.column) - 1
    for q in range(t.table.shape[0]):
        for level in range(t.table.shape[1]):
            total += t.table[q, level, t.column[min(d.left[i, q * levels + t.counted[level]], last)]]
    return total


def _weigh(t: Teacher, d: DegreeDecision, k: Int, out: Floats) -> None:
    for i in range(k):
        out[i] = _worth(t, d, i) + (1.0 if i > 0 else 0.0)


def _look_ahead(t: Teacher, d: DegreeDecision, k: Int, out: Floats) -> None:
    """Play on from the most promising rows by the table, in the same futures, and write what comes of them.

    Rows that are not played on are worth no more than before, and less than those that are.
    """
    jobs, tried = len(t.drawn) // t.futures, min(k, len(t.played))
    for i in range(k):
        t.best.keys[i] = -out[i]
    t.best.sort(k, False)
    for i in range(len(t.drawn)):
        t.drawn[i] = t.random.below(len(t.kind))
    least: Float = NEVER
    for a in range(tried):
        t.played[a] = 0.0
        for f in range(t.futures):
            t.played[a] += _played(t, t.ahead, d, d.choice[t.best.order[a]], f * jobs) / t.futures
        least = min(least, t.played[a])
    gap = out[t.best.order[tried - 1]] - least
    for i in range(k):
        out[i] = min(out[i] - gap, least)
    for a in range(tried):
        out[t.best.order[a]] = t.played[a]


def _played(t: Teacher, ahead: DegreeDecision, d: DegreeDecision, choice: Int, first: Int) -> Float:
    """Return what comes of a choice in the future that begins with the job drawn at `first`."""
    total: Float = 0.0
    worth: Float = 1.0
    ahead.now, ahead.turn = d.now, d.turn
    for s in range(d.tables.n):
        ahead.at.ends[0, s] = d.at.ends[0, s]
    if choice >= 0:
        total = 1.0
        start(ahead.at, 0, d.now, choice, d.times, d.kind, d.published)
    for h in range(first, first + len(t.drawn) // t.futures):
        ahead.now += d.turn * 32 / d.tables.n
        ahead.kind, ahead.beta = t.kind[t.drawn[h]], t.beta[t.drawn[h]]
        k = candidates(ahead)
        _weigh(t, ahead, k, t.found)
        best: Int = 0
        for i in range(1, k):
            if t.found[i] > t.found[best]:
                best = i
        if best > 0:
            total += worth
            start(ahead.at, 0, ahead.now, ahead.choice[best], ahead.times, ahead.kind, ahead.published)
        worth *= t.discount
    see(ahead)
    return total + worth * _worth(t, ahead, 0)


def _arrivals(time: Float, gap: Float) -> Int:
    """Return how many arrivals it takes until a time has passed."""
    arrivals: Int = cast(Int, max(0.0, min(FAR, ceil(time / gap - EPSILON))))
    return arrivals


def _hindsight(p: Plans, k: Int, gap: Float, kind: Int, out: Floats) -> None:
    for f in range(p.futures):
        for h in range(len(p.drawn)):
            p.drawn[h] = p.random.below(len(p.kind))
        _plan(p, k, gap, kind)
        for i in range(k):
            out[i] = (out[i] if f else 0.0) + p.value[i] / p.futures


def _plan(p: Plans, k: Int, gap: Float, kind: Int) -> None:
    """Write the most jobs accepted after each candidate, by a beam search over the jobs of one future."""
    now: Int = 0
    count: Int = 1
    p.done[0, 0] = p.root[0, 0] = 0
    for s in range(p.tables.n):
        p.held[0, 0, s] = p.start[s]
    steps: Int = len(p.drawn) + 1
    for i in range(steps):
        ways: Int = 0
        if i > 0:
            kind = p.kind[p.drawn[i - 1]]
        for b in range(k - 1 if i == 0 else len(p.ways)):
            p.ways[ways] = p.block[b + 1] if i == 0 else b
            time = p.times.jct[kind, p.tables.shape[p.ways[ways]]]
            if i == 0 or time <= p.beta[p.drawn[i - 1]] * p.times.sequential[kind]:
                p.until[ways] = i + max(1, _arrivals(time, gap))
                rest = min(p.until[ways], steps) - i - 1
                p.gain[ways] = 1.0 - PRICE * rest * p.tables.size[p.ways[ways]]
                ways += 1
        count = _keep(p, i, now, 1 - now, _trim(p, _extend(p, i, now, count, ways)))
        now = 1 - now
    for r in range(k):
        p.value[r] = -NEVER
    least: Float = NEVER
    for c in range(count):
        r = p.root[now, c]
        p.value[r] = max(p.value[r], p.done[now, c])
    for r in range(k):
        if p.value[r] >= 0:
            least = min(least, p.value[r])
    for r in range(k):
        p.value[r] = max(p.value[r], least - 1.0)


def _extend(p: Plans, i: Int, now: Int, count: Int, ways: Int) -> Int:
    """Write every way to go on from every partial plan, the first to reject the job, and return their number."""
    c: Int = 0
    steps: Int = len(p.drawn) + 1
    for plan in range(count):
        rest: Int = 0
        bits: Word = 0
        for s in range(p.tables.n):
            h = p.held[now, plan, s]
            if h > i:
                bits |= cast(Word, 1) << s
                rest += min(h, steps) - (i + 1)
        base = p.done[now, plan] - PRICE * rest
        p.score[c], p.parent[c], p.chosen[c] = base + TIE * p.random.uniform(), plan, -1
        c += 1
        for a in range(ways):
            if p.mask[0, p.ways[a]] & bits == 0:
                p.score[c], p.parent[c], p.chosen[c] = base + p.gain[a] + TIE * p.random.uniform(), plan, a
                c += 1
    return c


def _trim(p: Plans, c: Int) -> Int:
    """Keep the best of c ways, `SPARE` times as many as partial plans, and return how many are left."""
    place: Int = c - SPARE * p.held.shape[1]
    if place <= 0:
        return c
    for j in range(c):
        p.best.keys[j], p.best.order[j] = p.score[j], j
    low: Int = 0
    high: Int = c - 1
    at: Int = -1
    while at != place:  # Hoare's selection (1961)
        at = p.best.part(low, high, False)
        if at < place:
            low = at + 1
        else:
            high = at - 1
    d: Int = 0
    bound = p.score[p.best.order[place]]
    for j in range(c):
        if p.score[j] >= bound:
            p.score[d], p.parent[d], p.chosen[d] = p.score[j], p.parent[j], p.chosen[j]
            d += 1
    return d


def _keep(p: Plans, i: Int, now: Int, after: Int, c: Int) -> Int:
    """Make partial plans of the best of c ways, no two that hold the same servers equally long; return their number."""
    count: Int = 0
    for j in range(c):
        p.best.keys[j] = -p.score[j]
    p.best.sort(c, False)
    for j in range(c):
        plan, a = p.parent[p.best.order[j]], p.chosen[p.best.order[j]]
        for s in range(p.tables.n):
            p.held[after, count, s] = p.held[now, plan, s]
        if a >= 0:
            b = p.ways[a]
            for y in range(p.tables.size[b]):
                p.held[after, count, p.tables.servers[b, y]] = p.until[a]
        # candidates of the decision itself all stay
        if i > 0 and _known(p, i, after, count):
            continue
        p.done[after, count] = p.done[now, plan] + (a >= 0)
        p.root[after, count] = a + 1 if i == 0 else p.root[now, plan]
        count += 1
        if count == p.held.shape[1]:
            break
    return count


def _known(p: Plans, i: Int, after: Int, count: Int) -> bint:
    """Return whether a plan before holds the same servers as the last one, beyond the next arrival equally long."""
    for c in range(count):
        s: Int = 0
        while s < p.tables.n and max(p.held[after, c, s], i + 1) == max(p.held[after, count, s], i + 1):
            s += 1
        if s == p.tables.n:
            return True
    return False
