"""Which blocks a job could get, and what each of them would leave: the candidates of a decision.

The cluster is a graph of servers, blocks and candidates. A block hears from its servers when the last is free; a
candidate hears from every block that shares a server with it and would be free before it ends. The sum over blocks of
one-hot messages, by class of block and by how soon it is available, is a table of counts. Candidates that leave the
same table behind are one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .tables import DEGREES, Tables

LEVELS = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25])
"""Within how many turns a block is available, see `gangplan.learned.ramp.history.turn_of`."""

N_LEVELS = len(LEVELS)
CLASSES = 2 * len(DEGREES)
"""Blocks of each degree, and those of a fast shape among them."""

PER_SHAPE = 24
"""Candidates of a shape that are looked at: those whose servers are in the fewest free blocks."""

MOST = 512
"""Candidates of a decision at most, and to reject the job is one."""

_EPSILON = 1e-9


class Desk(NamedTuple):
    """Arrays that are written anew at every decision; b blocks.

    Attributes:
        level: of each block, int64 (b,).
        stamp: the last candidate that met each block, int64 (b,).
        mark: how many candidates there have been, int64 (1,).
        count: blocks available by class and level, int64 (CLASSES, N_LEVELS).
        taken: what a candidate takes of them, alike.
        left: what each candidate leaves, int64 (MOST, CLASSES, N_LEVELS).
        row: features of the candidates, float32 (MOST, width).
        block: of each candidate, int64 (MOST,), -1 for none: the job is rejected.
        key: tells candidates apart, int64 (MOST,).
        first: whether only the first free block of each degree is a candidate.
    """

    level: Any
    stamp: Any
    mark: Any
    count: Any
    taken: Any
    left: Any
    row: Any
    block: Any
    key: Any
    first: bool


def desk(tables: Tables, width: int, *, choose: bool = True) -> Desk:
    """Return arrays for one cluster; without `choose` the first free block of a degree is its only candidate."""
    b = len(tables.size)
    count, taken = (np.zeros((CLASSES, N_LEVELS), np.int64) for _ in range(2))
    left = np.zeros((MOST, CLASSES, N_LEVELS), np.int64)
    level, stamp, mark, block, key = (np.zeros(k, np.int64) for k in (b, b, 1, MOST, MOST))
    return Desk(level, stamp, mark, count, taken, left, np.zeros((MOST, width), np.float32), block, key, not choose)


@kernel
def level_of(turns: float) -> int:
    """Return the first level that is no sooner, or their number."""
    at = 0
    while at < N_LEVELS and turns > LEVELS[at] + _EPSILON:
        at += 1
    return at


@kernel
def find(end: Any, now: float, turn: float, tables: Any, jct: Any, limit: float, desk: Any) -> int:
    """Write the blocks of the candidates and what they leave into the desk, and return their number.

    Candidate 0 rejects the job.

    Args:
        end: when each server is free, float64 (n,).
        now: the time.
        turn: the unit of time.
        tables: of the cluster.
        jct: of the job in each shape, float64 (s,).
        limit: the longest that its user accepts.
        desk: is written.
    """
    see(end, now, turn, tables, desk)
    desk.block[0] = -1
    desk.left[0] = desk.count
    allowed = candidates(tables, jct, limit, desk)
    k, before = 1, -1
    for b in range(len(allowed)):
        if not allowed[b] or k == MOST or (desk.first and tables.degree[b] == before):
            continue
        before = tables.degree[b]
        take(b, level_of(jct[tables.shape[b]] / turn), tables, desk)
        if known(tables.shape[b], k, desk):
            continue
        desk.left[k] = desk.count - desk.taken
        desk.block[k] = b
        k += 1
    return k


@kernel
def see(end: Any, now: float, turn: float, tables: Any, desk: Any) -> None:
    """Find when each block is available, and count them by class and level."""
    desk.count[:] = 0
    half = CLASSES // 2
    # a block is available with the last of its servers, and so are levels
    own = np.zeros(tables.n, np.int64)
    for s in range(tables.n):
        own[s] = level_of(max(0.0, end[s] - now) / turn)
    for b in range(len(tables.size)):
        level = 0
        for i in range(tables.size[b]):
            level = max(level, own[tables.servers[b, i]])
        desk.level[b] = level
        if level < N_LEVELS:
            desk.count[tables.degree[b], level] += 1
            if tables.fast[tables.shape[b]]:
                desk.count[half + tables.degree[b], level] += 1
    _accumulate(desk.count)


@kernel
def _accumulate(count: Any) -> None:
    for q in range(CLASSES):
        for level in range(1, N_LEVELS):
            count[q, level] += count[q, level - 1]


@kernel
def candidates(tables: Any, jct: Any, limit: float, desk: Any) -> Any:
    """Return which blocks are free and would do; of shapes with many, those that spoil the fewest free blocks."""
    blocks, shapes = len(tables.size), len(jct)
    allowed = np.zeros(blocks, np.bool_)
    per = np.zeros(shapes, np.int64)
    for b in range(blocks):
        if desk.level[b] == 0 and jct[tables.shape[b]] <= limit:
            allowed[b] = True
            per[tables.shape[b]] += 1
    if per.max() <= PER_SHAPE:
        return allowed
    within = np.zeros(tables.n)
    for b in range(blocks):
        if desk.level[b] == 0:
            for i in range(tables.size[b]):
                within[tables.servers[b, i]] += 1
    for s in range(shapes):
        if per[s] > PER_SHAPE:
            found = np.zeros(per[s], np.int64)
            spoils = np.zeros(per[s])
            k = 0
            for b in range(blocks):
                if allowed[b] and tables.shape[b] == s:
                    found[k] = b
                    for i in range(tables.size[b]):
                        spoils[k] += within[tables.servers[b, i]]
                    k += 1
            order = np.argsort(spoils, kind="mergesort")
            for k in range(PER_SHAPE, len(order)):
                allowed[found[order[k]]] = False
    return allowed


@kernel
def take(block: int, until: int, tables: Any, desk: Any) -> None:
    """Count what a candidate takes: blocks that share a server with it and are available before level `until`."""
    desk.taken[:] = 0
    desk.mark[0] += 1
    half = CLASSES // 2
    for i in range(tables.size[block]):
        server = tables.servers[block, i]
        for j in range(tables.first[server], tables.first[server + 1]):
            b = tables.holds[j]
            if desk.stamp[b] == desk.mark[0]:
                continue
            desk.stamp[b] = desk.mark[0]
            level = desk.level[b]
            if level < until:
                for q in (tables.degree[b], half + tables.degree[b] if tables.fast[tables.shape[b]] else -1):
                    if q >= 0:
                        desk.taken[q, level] += 1
                        if until < N_LEVELS:
                            desk.taken[q, until] -= 1
    _accumulate(desk.taken)


@kernel
def known(shape: int, k: int, desk: Any) -> bool:
    """Return whether a row before has the same shape and takes the same."""
    key = np.int64(shape) * np.int64(1000003)
    for q in range(CLASSES):
        for level in range(N_LEVELS):
            key = key * np.int64(6364136223846793005) + desk.taken[q, level] + np.int64(1442695040888963407)
    desk.key[k] = key
    return bool((desk.key[1:k] == key).any())
