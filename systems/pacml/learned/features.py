"""What a decision looks like to the network: a row for rejecting the job, and one for each block that could take it.

The cluster is a graph of servers, blocks and candidates. A block hears from its servers when the last is free; a
candidate hears from every block that shares a server with it and would be free before it ends. The sum over blocks of
one-hot messages, by class of block and by how soon it is available, is a table of counts, which the network's first
layer turns into a sum of learned ones. Candidates that leave the same table behind are one.

Beside these counts a row holds what the jobs so far tell about those to come, the job, and the candidate itself.
Kernels are told `end`, when each server is free, float64 (n,), and `turn`, the unit of time, see `turn_of`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Floats, Ints, Ints2, Ints3, Singles, Singles2, kernel

from .tables import DEGREES, BlockTables, TypeTimes, place_degree

LEVELS = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25])
"""Within how many turns a block is available, see `turn_of`."""

N_LEVELS = len(LEVELS)
CLASSES = 2 * len(DEGREES)
"""Blocks of each degree, and those of a fast shape among them."""

PER_SHAPE = 24
"""Candidates of a shape that are looked at: those whose servers are in the fewest free blocks."""

MOST = 512
"""Candidates of a decision at most, and to reject the job is one."""

_EPSILON = 1e-9

STEPS = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 16.0])
"""Speed-ups; of each, how many jobs so far needed no more."""

_N, _BETA, _BETA2, _WORK, _WORK2, _EFFICIENT, _GAP = range(len(STEPS), len(STEPS) + 7)
SUMS = len(STEPS) + 8
"""Length of the sums."""

CONTEXT = (
    *(f"needs_{step:g}" for step in STEPS), "beta", "spread", "load", "variety", "efficiency_4", "efficiency_16",
    "busy", "size",
)  # fmt: skip
"""What a network sees of them, of the servers that are busy, and of the size of the cluster."""

JOB = ("beta", "sequential", "acceptable")
CANDIDATE = ("taken", "degree", "turns", "area", "slack", "efficiency", "fast", "wasted")
WIDTH = 2 * CLASSES * N_LEVELS + len(CONTEXT) + len(JOB) + len(CANDIDATE)
"""Features of a row."""


class FeatureScratch(NamedTuple):
    """Arrays that are written anew at every decision; b blocks.

    Attributes:
        level: of each block, int64 (b,).
        stamp: the last candidate that met each block, int64 (b,).
        mark: how many candidates there have been, int64 (1,).
        count: blocks available by class and level, int64 (CLASSES, N_LEVELS).
        taken: what a candidate takes of them, alike.
        left: what each candidate leaves, int64 (MOST, CLASSES, N_LEVELS).
        row: features of the candidates, float32 (MOST, WIDTH + kinds); those beyond `WIDTH` say which type the job is.
        choice: of each candidate, int64 (MOST,): a block, or a degree if `published`; -1 to reject the job.
        block: its block, int64 (MOST,), the largest one if there are several.
        time: its completion time, float64 (MOST,).
        key: tells candidates apart, int64 (MOST,).
        published: whether a candidate is a degree, and published first fit finds a block for ops of each size.
    """

    level: Ints
    stamp: Ints
    mark: Ints
    count: Ints2
    taken: Ints2
    left: Ints3
    row: Singles2
    choice: Ints
    block: Ints
    time: Floats
    key: Ints
    published: bool


def scratch_of(tables: BlockTables, *, choose: bool = True, kinds: int = 0) -> FeatureScratch:
    """Return arrays for one cluster; without `choose` the candidates are degrees, and rows tell apart so many kinds."""
    b = len(tables.size)
    count, taken = (np.zeros((CLASSES, N_LEVELS), np.int64) for _ in range(2))
    left = np.zeros((MOST, CLASSES, N_LEVELS), np.int64)
    level, stamp, mark, choice, block, key = (np.zeros(k, np.int64) for k in (b, b, 1, MOST, MOST, MOST))
    row, time = np.zeros((MOST, WIDTH + kinds), np.float32), np.zeros(MOST)
    return FeatureScratch(level, stamp, mark, count, taken, left, row, choice, block, time, key, not choose)


@kernel
def level_of(turns: float) -> int:
    """Return the first level that is no sooner, or their number."""
    at = 0
    while at < N_LEVELS and turns > LEVELS[at] + _EPSILON:
        at += 1
    return at


@kernel
def find(
    end: Floats,
    now: float,
    turn: float,
    tables: BlockTables,
    times: TypeTimes,
    m: int,
    limit: float,
    scratch: FeatureScratch,
) -> int:
    """Write the blocks of the candidates and what they leave into the scratch, and return their number.

    Candidate 0 rejects the job.
    """
    see(end, now, turn, tables, scratch)
    scratch.choice[0] = scratch.block[0] = -1
    scratch.left[0] = scratch.count
    if scratch.published:
        return find_degrees(turn, tables, times, m, limit, scratch)
    jct = times.jct[m]
    allowed = candidates(tables, jct, limit, scratch)
    k = 1
    for b in range(len(allowed)):
        if not allowed[b] or k == MOST:
            continue
        scratch.taken[:] = 0
        scratch.mark[0] += 1
        take(b, level_of(jct[tables.shape[b]] / turn), tables, scratch)
        _accumulate(scratch.taken)
        if known(tables.shape[b], k, scratch):
            continue
        scratch.left[k] = scratch.count - scratch.taken
        scratch.choice[k] = scratch.block[k] = b
        scratch.time[k] = jct[tables.shape[b]]
        k += 1
    return k


@kernel
def see(end: Floats, now: float, turn: float, tables: BlockTables, scratch: FeatureScratch) -> None:
    """Find when each block is available, and count them by class and level."""
    scratch.count[:] = 0
    half = CLASSES // 2
    # a block is available with the last of its servers, and so are levels
    own = np.zeros(tables.n, np.int64)
    for s in range(tables.n):
        own[s] = level_of(max(0.0, end[s] - now) / turn)
    for b in range(len(tables.size)):
        level = 0
        for i in range(tables.size[b]):
            level = max(level, own[tables.servers[b, i]])
        scratch.level[b] = level
        if level < N_LEVELS:
            scratch.count[tables.degree[b], level] += 1
            if tables.fast[tables.shape[b]]:
                scratch.count[half + tables.degree[b], level] += 1
    _accumulate(scratch.count)


@kernel
def _accumulate(count: Ints2) -> None:
    for q in range(CLASSES):
        for level in range(1, N_LEVELS):
            count[q, level] += count[q, level - 1]


@kernel
def candidates(tables: BlockTables, jct: Floats, limit: float, scratch: FeatureScratch) -> Bools:
    """Return which blocks are free and would do; of shapes with many, those that spoil the fewest free blocks."""
    blocks, shapes = len(tables.size), len(jct)
    allowed = np.zeros(blocks, np.bool_)
    per = np.zeros(shapes, np.int64)
    for b in range(blocks):
        if scratch.level[b] == 0 and jct[tables.shape[b]] <= limit:
            allowed[b] = True
            per[tables.shape[b]] += 1
    if per.max() <= PER_SHAPE:
        return allowed
    within = np.zeros(tables.n)
    for b in range(blocks):
        if scratch.level[b] == 0:
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
def take(block: int, until: int, tables: BlockTables, scratch: FeatureScratch) -> None:
    """Count what a candidate takes: blocks that share a server with it and are available before level `until`."""
    half = CLASSES // 2
    for i in range(tables.size[block]):
        server = tables.servers[block, i]
        for j in range(tables.first[server], tables.first[server + 1]):
            b = tables.holds[j]
            if scratch.stamp[b] == scratch.mark[0]:
                continue
            scratch.stamp[b] = scratch.mark[0]
            level = scratch.level[b]
            if level < until:
                for q in (tables.degree[b], half + tables.degree[b] if tables.fast[tables.shape[b]] else -1):
                    if q >= 0:
                        scratch.taken[q, level] += 1
                        if until < N_LEVELS:
                            scratch.taken[q, until] -= 1


@kernel
def find_degrees(
    turn: float, tables: BlockTables, times: TypeTimes, m: int, limit: float, scratch: FeatureScratch
) -> int:
    """Write the degrees at which published first fit finds a place that would do, as `find` does for blocks."""
    free = scratch.level == 0
    placed = np.zeros(len(DEGREES), np.int64)
    k = 1
    for q in range(len(DEGREES)):
        time = place_degree(free, q, m, tables, times, placed)
        if not time <= limit:
            continue
        scratch.taken[:] = 0
        scratch.mark[0] += 1
        for j in range(len(placed)):
            if placed[j] >= 0:
                take(placed[j], level_of(time / turn), tables, scratch)
                scratch.block[k] = placed[j]
        _accumulate(scratch.taken)
        scratch.left[k] = scratch.count - scratch.taken
        scratch.choice[k], scratch.time[k] = q, time
        k += 1
    return k


@kernel
def known(shape: int, k: int, scratch: FeatureScratch) -> bool:
    """Return whether a row before has the same shape and takes the same."""
    key = np.int64(shape) * np.int64(1000003)
    for q in range(CLASSES):
        for level in range(N_LEVELS):
            key = key * np.int64(6364136223846793005) + scratch.taken[q, level] + np.int64(1442695040888963407)
    scratch.key[k] = key
    return bool((scratch.key[1:k] == key).any())


@kernel
def remember(sums: Floats, beta: float, sequential: float, efficiency: Floats, gap: float) -> None:
    """Add a job that arrives `gap` after the one before."""
    for k in range(len(STEPS)):
        if 1.0 / beta <= STEPS[k] + 1e-9:
            sums[k] += 1
    sums[_N] += 1
    sums[_BETA] += beta
    sums[_BETA2] += beta * beta
    sums[_WORK] += sequential
    sums[_WORK2] += sequential * sequential
    sums[_EFFICIENT] += efficiency[0]
    sums[_GAP] += gap
    sums[_GAP + 1] += efficiency[1]


@kernel
def turn_of(sums: Floats, servers: int) -> float:
    """Return the mean time between arrivals, scaled to 32 servers: a *turn*, the unit of time of all features.

    After the first job alone, which tells none, such that the load would be 1.
    """
    if sums[_N] < 1.5 or sums[_GAP] <= 0:
        return float(sums[_WORK] / sums[_N] / 32.0)
    return float(sums[_GAP] / (sums[_N] - 1.0) * servers / 32.0)


@kernel
def write_context(sums: Floats, busy: float, servers: int, turn: float, out: Floats) -> None:
    """Write the features named in `CONTEXT`; `busy` is the share of servers that are."""
    n, k = sums[_N], len(STEPS)
    for i in range(k):
        out[i] = (sums[i] + 0.5) / (n + 1.0)
    beta, work = sums[_BETA] / n, sums[_WORK] / n
    out[k] = beta
    out[k + 1] = 2 * np.sqrt(max(sums[_BETA2] / n - beta * beta, 0.0))
    out[k + 2] = min(work / (32.0 * turn), 3.0)
    out[k + 3] = np.sqrt(max(sums[_WORK2] / n - work * work, 0.0)) / work
    out[k + 4] = sums[_EFFICIENT] / n
    out[k + 5] = sums[_GAP + 1] / n
    out[k + 6] = busy
    out[k + 7] = np.log2(servers / 32.0) / 4


@kernel
def write_rows(
    end: Floats, now: float, turn: float, tables: BlockTables, times: TypeTimes, m: int, beta: float, sums: Floats,
    scratch: FeatureScratch,
) -> int:  # fmt: skip
    """Write the rows of one decision into the scratch and return their number; row 0 rejects the job.

    Args:
        beta: the share of it that is acceptable.
        sums: of the jobs so far, this one included.
    """
    context, job, own = np.zeros(len(CONTEXT)), np.zeros(len(JOB)), np.zeros(len(CANDIDATE))
    write_context(sums, (end > now).sum() / tables.n, tables.n, turn, context)
    sequential = times.sequential[m]
    limit = beta * sequential
    job[0], job[1], job[2] = beta, np.log1p(sequential / (32 * turn)), 0.3 * np.log1p(limit / turn)
    k = find(end, now, turn, tables, times, m, limit, scratch)
    for i in range(k):
        b = scratch.block[i]
        if b >= 0:
            time, size = scratch.time[i], tables.size[b]
            own[0], own[1], own[2] = 1.0, np.log2(size) / 4, 0.3 * np.log1p(time / turn)
            own[3], own[4], own[5] = time * size / (32 * turn), time / limit, sequential / (time * size)
            own[6], own[7] = tables.fast[tables.shape[b]], np.ceil(time / turn - _EPSILON) - time / turn
        _write(scratch.row[i], scratch.left[i], tables.n, context, job, own)
        scratch.row[i, WIDTH:] = 0.0
        if WIDTH + m < scratch.row.shape[1]:
            scratch.row[i, WIDTH + m] = 1.0
    return k


@kernel
def _write(row: Singles, count: Ints2, servers: int, context: Floats, job: Floats, own: Floats) -> None:
    """Write the features: counts by density and presence, then what is known of the past, the job, the candidate."""
    at, scale = 0, 32.0 / servers
    for q in range(CLASSES):
        for level in range(N_LEVELS):
            row[at] = 0.3 * np.log1p(count[q, level] * scale)
            row[at + 1] = 1.0 if count[q, level] > 0 else 0.0
            at += 2
    for part in (context, job, own):
        for value in part:
            row[at] = value
            at += 1
