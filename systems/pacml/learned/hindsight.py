"""Plans of sampled futures: what each candidate of a decision is worth to one who knew what comes.

This is hindsight optimisation (Chong, Givan and Chang, CDC 2000). Each future is planned as if it were known, by the
beam search of `gangplan.systems.pacml.plans`, compiled, with the decision's candidates for its first job. A candidate
is worth the jobs accepted after it, in the mean over the futures; one that the beam drops before the end counts as one
job worse than all that it keeps. Searching on from each candidate by itself instead says little: most are as good as
any other to one who knows the future (0.087 blocked against 0.073 on distribution D, validation seeds).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, Ints, Ints2, Ints3, kernel

from ..arrivals import ArrivalCase
from ..simulate import Acceptance, RampState
from .features import MOST, FeatureScratch, find, scratch_of
from .parts import WHOLE, Part
from .tables import BlockTables, Long, TypeTimes, tables, times_of

KEPT, FUTURES, HORIZON = 20, 16, 24
"""Partial plans kept, futures of each decision if nobody says else, jobs in a future."""

PRICE = 0.005
"""Of a held server at an arrival, in jobs, see `gangplan.systems.pacml.plans`."""

_SPARE = 4
"""Of so many times `KEPT` duplicates are dropped."""

_EPSILON = 1e-9


class Future(NamedTuple):
    """Jobs of which futures are drawn, p of them.

    Attributes:
        kind: of each, int64 (p,).
        beta: the share of its sequential time that is acceptable, float64 (p,).
    """

    kind: Ints
    beta: Floats


class Plans(NamedTuple):
    """Arrays of the partial plans; n servers, b blocks.

    Attributes:
        mask: servers of each block as bits, int64 (b,).
        mark: a number for each block, and the sum of its servers' numbers, int64 (b,).
        own: number of each server, int64 (n,).
        held: arrival at which each server is free, now and next, int64 (2, KEPT, n).
        done, root: jobs accepted and the row begun with, int64 (2, KEPT).
        score: of the ways to go on, float64 (KEPT * (b + 1),).
        parent, chosen: of the ways to go on: the partial plan and the place among the blocks, or -1; int64 alike.
        key, fresh: tell partial plans apart, now and next, int64 (KEPT,).
    """

    mask: Ints
    mark: Ints
    own: Ints
    held: Ints3
    done: Ints2
    root: Ints2
    score: Floats
    parent: Ints
    chosen: Ints
    key: Ints
    fresh: Ints


def plans(tables: BlockTables) -> Plans:
    """Return arrays for one cluster of at most 64 servers."""
    own = np.random.default_rng(0).integers(1, 2**40, tables.n)
    held = tables.servers >= 0
    servers = np.where(held, tables.servers, 0)
    mask = np.where(held, np.int64(1) << servers.astype(np.int64), 0).sum(axis=1)
    mark = np.where(held, own[servers], 0).sum(axis=1)
    room = KEPT * (len(tables.size) + 1)
    two, many = (2, KEPT), np.zeros(room)
    return Plans(
        mask, mark, own, np.zeros((*two, tables.n), np.int64), np.zeros(two, np.int64), np.zeros(two, np.int64), many,
        *(np.zeros(k, np.int64) for k in (room, room, KEPT, KEPT)),
    )  # fmt: skip


@kernel
def hindsight(
    k: int, end: Floats, now: float, gap: float, m: int, future: Future, tables: BlockTables, times: TypeTimes,
    scratch: FeatureScratch, plans: Plans, futures: int, out: Floats,
) -> None:  # fmt: skip
    """Write what each of the k candidates on the scratch is worth: jobs accepted, in the mean over so many futures."""
    start, value = np.zeros(tables.n, np.int64), np.zeros(k)
    for s in range(tables.n):
        start[s] = max(0, int(np.ceil((end[s] - now) / gap - _EPSILON)))
    out[:k] = 0.0
    for _ in range(futures):
        drawn = np.random.randint(0, len(future.kind), HORIZON)  # noqa: NPY002
        _plan(k, start, gap, m, Future(future.kind[drawn], future.beta[drawn]), tables, times, scratch, plans, value)
        out[:k] += value / futures


@kernel
def _plan(
    k: int, start: Ints, gap: float, m: int, future: Future, tables: BlockTables, times: TypeTimes,
    scratch: FeatureScratch, plans: Plans, value: Floats,
) -> None:  # fmt: skip
    """Write the most jobs accepted after each candidate, by a beam search over the jobs of one future."""
    blocks = len(tables.size)
    ways, until, gain = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64), np.zeros(blocks)
    now, after, count = 0, 1, 1
    plans.held[0, 0] = start
    plans.done[0, 0], plans.root[0, 0] = 0, 0
    steps = len(future.kind) + 1
    for i in range(steps):
        w = 0
        if i == 0:
            jct = times.jct[m]
            w = k - 1
            ways[:w] = scratch.block[1:k]
        else:
            kind = future.kind[i - 1]
            jct, limit = times.jct[kind], future.beta[i - 1] * times.sequential[kind]
            for b in range(blocks):
                if jct[tables.shape[b]] <= limit:
                    ways[w] = b
                    w += 1
        for a in range(w):
            b = ways[a]
            until[a] = i + max(1, int(np.ceil(jct[tables.shape[b]] / gap - _EPSILON)))
            gain[a] = 1.0 - PRICE * (min(until[a], steps) - i - 1) * tables.size[b]
        found = _extend(i, steps, now, count, ways[:w], gain, plans)
        found = _trim(found, plans)
        count = _keep(i, now, after, found, ways, until, tables, plans)
        now, after = after, now
    value[:k] = -np.inf
    for p in range(count):
        r = plans.root[now, p]
        value[r] = max(value[r], plans.done[now, p])
    least = np.inf
    for r in range(k):
        if value[r] >= 0:
            least = min(least, value[r])
    for r in range(k):
        if value[r] < 0:
            value[r] = least - 1.0


@kernel
def _extend(i: int, steps: int, now: int, count: int, ways: Ints, gain: Floats, plans: Plans) -> int:
    """Write every way to go on from every partial plan, the first to reject the job, and return their number."""
    held, score, c = plans.held[now], plans.score, 0
    for p in range(count):
        rest, bits, key = 0, np.int64(0), np.int64(0)
        for s in range(held.shape[1]):
            h = held[p, s]
            if h > i:
                bits |= np.int64(1) << s
                rest += min(h, steps) - (i + 1)
                key += plans.own[s] * (h - (i + 1))
        plans.key[p] = key
        base = plans.done[now, p] - PRICE * rest
        # ties are broken at random: of one parent's children the first would crowd out all others
        score[c], plans.parent[c], plans.chosen[c] = base + 1e-6 * np.random.random(), p, -1  # noqa: NPY002
        c += 1
        for a in range(len(ways)):
            if plans.mask[ways[a]] & bits == 0:
                score[c] = base + gain[a] + 1e-6 * np.random.random()  # noqa: NPY002
                plans.parent[c], plans.chosen[c] = p, a
                c += 1
    return c


@kernel
def _trim(c: int, plans: Plans) -> int:
    """Keep the best of c ways, `_SPARE` times as many as partial plans, and return how many are left."""
    score, most = plans.score, _SPARE * plans.held.shape[1]
    if c <= most:
        return c
    bound = np.partition(score[:c], c - most)[c - most]
    d = 0
    for j in range(c):
        if score[j] >= bound:
            score[d], plans.parent[d], plans.chosen[d] = score[j], plans.parent[j], plans.chosen[j]
            d += 1
    return d


@kernel
def _keep(i: int, now: int, after: int, c: int, ways: Ints, until: Ints, tables: BlockTables, plans: Plans) -> int:
    """Make partial plans of the best of c ways, no two that hold the same servers equally long; return their number."""
    width, count = plans.held.shape[1], 0
    for j in np.argsort(-plans.score[:c]):
        p, a = plans.parent[j], plans.chosen[j]
        key = plans.key[p]
        if a >= 0:
            key += (until[a] - (i + 1)) * plans.mark[ways[a]]
        # candidates of the decision itself all stay
        if i > 0 and (plans.fresh[:count] == key).any():
            continue
        plans.fresh[count] = key
        plans.held[after, count] = plans.held[now, p]
        plans.done[after, count] = plans.done[now, p]
        plans.root[after, count] = a + 1 if i == 0 else plans.root[now, p]
        if a >= 0:
            plans.done[after, count] += 1
            b = ways[a]
            for y in range(tables.size[b]):
                plans.held[after, count, tables.servers[b, y]] = until[a]
        count += 1
        if count == width:
            break
    return count


NAMED = 2
"""Blocks that plans choose between, and none. With more, chance between the plans decides more often: with three 0.0067
more of the jobs are blocked on A (eight validation seeds)."""
FIRST = 30
"""Jobs that arrive before they do."""


@kernel
def _seed(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - the only generator that compiled code has


class Futures:
    """Values the candidates of a decision by plans of futures, see `gangplan.systems.pacml.learned.hindsight`.

    Futures are drawn from the jobs that have arrived, at their mean gap; nothing else is known of what comes.

    Args:
        count: of the futures of a decision.
    """

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._seed, self._count = seed, count
        self._case: ArrivalCase | None = None
        self._index = 0

    def begin(self, state: RampState, cluster: BlockTables) -> None:
        """Prepare for the case of a state, unless it goes on from that of the last one."""
        if self._case is not state.case or state.index < self._index:
            self._case = state.case
            self.times, self._plans, self._value = times_of(state.case.types), plans(cluster), np.zeros(MOST)
            _seed(self._seed)
        self._index = state.index

    def value(self, k: int, state: RampState, cluster: BlockTables, scratch: FeatureScratch) -> FloatArray:
        """Return the jobs accepted after each of the k candidates on the scratch, float64 (k,)."""
        case, i = state.case, state.index
        past = Future(case.model[: i + 1].astype(np.int64), np.array(case.fraction[: i + 1]))
        hindsight(
            k, state.ends, state.now, gap(state), int(case.model[i]), past, cluster, self.times, scratch,
            self._plans, self._count, self._value,
        )  # fmt: skip
        return self._value[:k]

    def choose(self, state: RampState, part: Part, block: Long, score: FloatArray) -> int:
        """Return the best of a policy's two best candidates and rejection, by its score and the jobs accepted.

        Args:
            block: of each candidate, the first -1 for rejection, int64 (k,).
            score: the policy's, in jobs, float64 (k,).
        """
        best = np.argsort(-score, kind="stable")[:NAMED]
        named = best[block[best] >= 0]
        if state.index < FIRST or not len(named):
            return int(block[best[0]])
        self.begin(state, part.tables)
        rows = np.append(0, named)
        part.scratch.block[1 : len(rows)] = block[named]
        value = self.value(len(rows), state, part.tables, part.scratch)
        return int(block[rows[int(np.argmax(value + score[rows]))]])


def gap(state: RampState) -> float:
    """Return the mean gap so far; before the second job, the job's sequential time a server."""
    if state.index and state.now > state.case.submit[0]:
        return float(state.now - state.case.submit[0]) / state.index
    return float(state.job.sequential) / state.blocks.n_servers


class PastPlans:
    """Take the candidate that `Futures` value most. One policy plays one case."""

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._futures = Futures(seed, count)
        self._case: ArrivalCase | None = None

    def decide(self, state: RampState) -> Acceptance | None:
        """Return degree and block for the job, or None to reject it.

        Raises:
            InstanceError: if the cluster has more than 64 servers or other degrees than the policy's.
        """
        if self._case is not state.case:
            if state.blocks.n_servers > WHOLE:
                raise InstanceError("cluster", f"has {state.blocks.n_servers} servers; plans are for at most {WHOLE}")
            self._case, self._tables = state.case, tables(state.blocks)
            self._scratch = scratch_of(self._tables)
        self._futures.begin(state, self._tables)
        m, times = int(state.case.model[state.index]), self._futures.times
        k = find(state.ends, state.now, gap(state), self._tables, times, m, state.limit, self._scratch)
        best = int(np.argmax(self._futures.value(k, state, self._tables, self._scratch))) if k > 1 else 0
        block = int(self._scratch.choice[best])
        return None if block < 0 else Acceptance(int(state.blocks.degree[block]), block)
