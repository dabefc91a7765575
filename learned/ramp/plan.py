"""Plans of sampled futures: what each row of a decision is worth to one who knew what comes.

This is hindsight optimisation (Chong, Givan and Chang, CDC 2000). Each future is planned as if it were known, by the
beam search of `gangplan.simulator.ramp.search`, compiled, and over the rows of one decision instead of all blocks. A row
is worth the jobs accepted after it, in the mean over the futures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .tables import Tables

KEPT, FUTURES, HORIZON = 20, 16, 24
"""Partial plans kept, futures of each decision, jobs in a future."""

PRICE = 0.005
"""Of a held server at an arrival, in jobs, see `gangplan.simulator.ramp.beam`."""

_SPARE = 4
"""Of so many times `KEPT` duplicates are dropped."""

_EPSILON = 1e-9


class Plans(NamedTuple):
    """Arrays of the partial plans; n servers, b blocks.

    Attributes:
        mask: servers of each block as bits, int64 (b,).
        mark: a number for each block, and the sum of its servers' numbers, int64 (b,).
        own: number of each server, int64 (n,).
        held: arrival at which each server is free, now and next, int64 (2, KEPT, n).
        done, root: jobs accepted and the row begun with, int64 (2, KEPT).
        score: of the candidates, float64 (KEPT * (b + 1),).
        parent, block: of the candidates, int64 alike.
    """

    mask: Any
    mark: Any
    own: Any
    held: Any
    done: Any
    root: Any
    score: Any
    parent: Any
    block: Any


def plans(tables: Tables, kept: int = KEPT) -> Plans:
    """Return arrays for one cluster of at most 63 servers."""
    own = np.random.default_rng(0).integers(1, 2**40, tables.n)
    held = tables.servers >= 0
    servers = np.where(held, tables.servers, 0)
    mask = np.where(held, np.int64(1) << servers.astype(np.int64), 0).sum(axis=1)
    mark = np.where(held, own[servers], 0).sum(axis=1)
    room = kept * (len(tables.size) + 1)
    return Plans(
        mask, mark, own, np.zeros((2, kept, tables.n), np.int64), np.zeros((2, kept), np.int64), np.zeros((2, kept), np.int64),
        np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64),
    )  # fmt: skip


@njit(cache=True)
def hindsight(
    k: int, end: Any, now: float, gap: float, m: int, future: Any, accept: Any, tables: Any, menus: Any, desk: Any,
    plans: Any, out: Any,
) -> None:  # fmt: skip
    """Write what each of the k rows of the desk is worth: jobs accepted over the horizon, in the mean over futures."""
    start, value = np.zeros(tables.n, np.int64), np.zeros(k)
    for s in range(tables.n):
        start[s] = max(0, int(np.ceil((end[s] - now) / gap - _EPSILON)))
    out[:k] = 0.0
    for _ in range(FUTURES):
        drawn = np.random.randint(0, len(future), HORIZON)  # noqa: NPY002
        _plan(k, start, gap, m, future[drawn], accept[drawn], tables, menus, desk, plans, value)
        out[:k] += value / FUTURES


@njit(cache=True)
def _turns(time: float, gap: float) -> int:
    return max(1, int(np.ceil(time / gap - _EPSILON)))


@njit(cache=True)
def _plan(
    k: int, start: Any, gap: float, m: int, kinds: Any, fractions: Any, tables: Any, menus: Any, desk: Any, plans: Any,
    value: Any,
) -> None:  # fmt: skip
    """Write the most jobs accepted after each row by a beam search over some futures' jobs.

    What the beam drops is worth one job less than the least of what it keeps.
    """
    width, n = plans.held.shape[1], tables.n
    blocks, score, parent, chosen = len(tables.size), plans.score, plans.parent, plans.block
    ways, until, gain = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64), np.zeros(blocks)
    key, fresh = np.zeros(width, np.int64), np.zeros(width, np.int64)
    now, after, count = 0, 1, 1
    plans.held[0, 0] = start
    plans.done[0, 0], plans.root[0, 0] = 0, 0
    steps = len(kinds) + 1
    for i in range(steps):
        held, done, root = plans.held[now], plans.done[now], plans.root[now]
        w = 0
        if i == 0:
            jct = menus.jct[m]
            w = k - 1
            ways[:w] = desk.block[1:k]
        else:
            jct, limit = menus.jct[kinds[i - 1]], fractions[i - 1] * menus.sequential[kinds[i - 1]]
            for b in range(blocks):
                if jct[tables.shape[b]] <= limit:
                    ways[w] = b
                    w += 1
        for a in range(w):
            b = ways[a]
            until[a] = i + _turns(jct[tables.shape[b]], gap)
            gain[a] = 1.0 - PRICE * (min(until[a], steps) - i - 1) * tables.size[b]
        c = 0
        for p in range(count):
            rest, bits, hashed = 0, np.int64(0), np.int64(0)
            for s in range(n):
                h = held[p, s]
                if h > i:
                    bits |= np.int64(1) << s
                    rest += min(h, steps) - (i + 1)
                    hashed += plans.own[s] * (h - (i + 1))
            key[p] = hashed
            base = done[p] - PRICE * rest
            score[c], parent[c], chosen[c] = base + 1e-6 * np.random.random(), p, -1  # noqa: NPY002
            c += 1
            for a in range(w):
                if plans.mask[ways[a]] & bits == 0:
                    # ties are broken at random: of one parent's children the first would crowd out all others
                    score[c] = base + gain[a] + 1e-6 * np.random.random()  # noqa: NPY002
                    parent[c], chosen[c] = p, a
                    c += 1
        if c > _SPARE * width:
            bound = np.partition(score[:c], c - _SPARE * width)[c - _SPARE * width]
            d = 0
            for j in range(c):
                if score[j] >= bound:
                    score[d], parent[d], chosen[d] = score[j], parent[j], chosen[j]
                    d += 1
            c = d
        count = 0
        for j in np.argsort(-score[:c]):
            p, a = parent[j], chosen[j]
            hashed = key[p]
            if a >= 0:
                hashed += (until[a] - (i + 1)) * plans.mark[ways[a]]
            if i > 0 and (fresh[:count] == hashed).any():
                continue
            fresh[count] = hashed
            plans.held[after, count] = held[p]
            plans.done[after, count] = done[p]
            plans.root[after, count] = a + 1 if i == 0 else root[p]
            if a >= 0:
                plans.done[after, count] += 1
                b = ways[a]
                for y in range(tables.size[b]):
                    plans.held[after, count, tables.servers[b, y]] = until[a]
            count += 1
            if count == width:
                break
        now, after = after, now
    least = 1e9
    value[:k] = -1e9
    for p in range(count):
        r = plans.root[now, p]
        value[r] = max(value[r], plans.done[now, p])
    for r in range(k):
        if value[r] > -1e8:
            least = min(least, value[r])
    for r in range(k):
        if value[r] < -1e8:
            value[r] = least - 1.0
