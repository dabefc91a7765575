"""Compiled: the blocks of a cluster, the times of job types, and who holds which servers by first fit and by rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.ramp import collective_cost

from ..jobs import Blocks, JobType

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Ints, Ints2

Long = NDArray[np.int64]

DEGREES = (1, 2, 4, 6, 8, 16)
"""The degrees that the policy knows; a cluster may lack blocks of some."""

NEAR = 1.05
"""A shape is fast if its collectives cost at most this much more than on the best shape of the degree."""

EPSILON = declare(Float, 1e-9)
NEVER = declare(Float, float("inf"))


@final
@cclass
class BlockTables:
    """The blocks of one cluster of n servers; b blocks of s shapes.

    Attributes:
        servers: of each block, int32 (b, 16), filled up with -1.
        size: of each block, int64 (b,).
        degree: of each block, index into `DEGREES`, int64 (b,).
        shape: of each block, int64 (b,).
        fast: of each shape, whether its collectives are among the fastest of its degree, int64 (s,).
        first, holds: the blocks that hold server i are ``holds[first[i] : first[i + 1]]``.
        n: servers.
    """

    def __init__(self, servers: Any, degree: Any, shape: Any, fast: Any, n: Int) -> None:
        held = servers >= 0
        if not len(servers) == len(degree) == len(shape) or (held[:, 1:] > held[:, :-1]).any() or servers.max() >= n:
            raise ValueError(f"{servers.shape} servers are not {len(degree)} blocks of {n}")
        if degree.min() < 0 or degree.max() >= len(DEGREES) or shape.min() < 0 or shape.max() >= len(fast):
            raise ValueError(f"blocks are not of {len(DEGREES)} degrees and {len(fast)} shapes")
        self.n, self.servers, self.size = n, np.array(servers, np.int32), held.sum(axis=1)
        self.degree, self.shape, self.fast = (np.array(x, np.int64) for x in (degree, shape, np.asarray(fast) > 0))
        order = np.argsort(servers[held], kind="stable")
        self.first = np.searchsorted(servers[held][order], np.arange(n + 1))
        self.holds = np.repeat(np.arange(len(servers)), held.sum(axis=1))[order]


@final
@cclass
class TypeTimes:
    """Job types on one cluster; k types, s shapes. Times are in whatever unit the types have.

    Attributes:
        jct: completion time inside a block of each shape, float64 (k, s), inf where there is none.
        sequential: completion time on one server, float64 (k,).
        efficiency: speed-up over degree at degrees 4 and 16 at best, float64 (k, 2); 0 without a block.
        uses: whether published first fit looks for a block of each size at each degree, int64 (k, degrees, sizes).
        spread: completion time by published first fit on an empty cluster, float64 (k, degrees), inf where it fails.
    """

    def __init__(self, types: Sequence[JobType], *, published: bool = False) -> None:
        """Copy the times of job types, all on one cluster; without `published` nothing of first fit."""
        jct, sequential = (np.array([getattr(kind, name) for kind in types]) for name in ("jct", "sequential"))
        of = np.array([i for i, _ in types[0].blocks.shapes])
        efficiency = np.zeros((len(types), 2))
        for column, degree in enumerate((4, 16)):
            here = of == DEGREES.index(degree)
            if here.any():
                efficiency[:, column] = sequential / (degree * jct[:, here].min(axis=1))
        uses = np.zeros((len(types), len(DEGREES), len(DEGREES)), np.int64)
        spread = np.full((len(types), len(DEGREES)), np.inf)
        free = np.ones(types[0].blocks.n_servers, dtype=bool)
        for k, kind in enumerate(types if published else ()):
            for i, sizes in enumerate(kind.sizes):
                found = kind.published(i, free) if set(sizes) <= set(DEGREES) else None
                if found is not None:
                    spread[k, i] = found.jct
                    uses[k, i, [DEGREES.index(size) for size in sizes]] = 1
        self.jct, self.sequential, self.efficiency, self.uses, self.spread = jct, sequential, efficiency, uses, spread


def tables(blocks: Blocks) -> BlockTables:
    """Return the arrays of a cluster.

    Raises:
        InstanceError: if it has other degrees than `DEGREES`.
    """
    if tuple(blocks.degrees) != DEGREES:
        raise InstanceError("degrees", f"{tuple(blocks.degrees)} are not the policy's {DEGREES}")
    slope = np.array([collective_cost(blocks.topology, span)[1] for _, span in blocks.shapes])
    degree = np.array([i for i, _ in blocks.shapes])
    least = np.array([slope[degree == i].min() for i in degree])
    return BlockTables(blocks.servers, blocks.degree, blocks.shape, slope <= NEAR * least, blocks.n_servers)


@final
@cclass
class Clusters:
    """Clusters side by side, R of them, that are alike but for who holds which servers.

    Attributes:
        tables: of each.
        ends: when each server of each is free, float64 (R, n); all are at first.
        free: which blocks of the one that was last looked at are, bool (b,).
        placed: blocks that first fit has found, by size, -1 for none, int64 (degrees,).
        stamp, mark: what each block was last met by, int64 (b,), and the last number given out.
    """

    def __init__(self, tables: BlockTables, count: Int = 1) -> None:
        b = len(tables.size)
        self.tables, self.ends, self.mark = tables, np.full((count, tables.n), -1.0), 0
        self.placed, self.stamp = np.zeros(len(DEGREES), np.int64), np.zeros(b, np.int64)
        self.free = np.zeros(b, np.uint8)

    def check(self, times: TypeTimes, kind: Int, row: Int) -> None:
        """Raise an error unless a type is one of those and the cluster one of these."""
        if not 0 <= kind < len(times.sequential) or not 0 <= row < len(self.ends):
            raise ValueError(f"type {kind} of {len(times.sequential)} on cluster {row} of {len(self.ends)}")
        if times.jct.shape[1] != len(self.tables.fast):
            raise ValueError(f"times on {times.jct.shape[1]} shapes, not {len(self.tables.fast)}")

    def fit(self, row: Int, now: Float, degree: Int, times: TypeTimes, kind: Int, limit: Float) -> float:
        """Hold what published first fit finds for a job at a degree, unless it takes too long; return its time."""
        self.check(times, kind, row)
        if not 0 <= degree < len(self.placed):
            raise ValueError(f"degree {degree} of {len(self.placed)}")
        return fitted(self, row, now, now, degree, times, kind, limit)

    def go_on(self, block: Ints, now: Float, times: TypeTimes, kind: Int, limit: Float, rules: Ints2) -> None:
        """Let a job arrive at clusters of which the first gives it `block[0]`, and each other goes by a rule.

        Args:
            block: that the job gets in each cluster, or -1, int64 (R,); all but the first is written.
            rules: see `.guard`, int64 (R - 1, 2).
        """
        rows: Int = len(self.ends)
        if len(block) != rows or rules.shape[0] != rows - 1 or rules.shape[1] != 2 or block[0] >= len(self.free):
            raise ValueError(f"{rules.shape[0]} rules and {len(block)} blocks are not of {rows} clusters")
        self.check(times, kind, 0)
        row: Int
        with nogil:
            for row in range(rows):
                if row > 0:
                    block[row] = ruled(self, row, now, times, kind, limit, rules[row - 1, 0], rules[row - 1, 1])
                if block[row] >= 0:
                    hold(self, row, block[row], now + times.jct[kind, self.tables.shape[block[row]]])


def free_blocks(at: Clusters, row: Int, now: Float) -> None:
    """Find which blocks of a cluster are free."""
    at.free[:] = True
    for s in range(at.tables.n):
        if at.ends[row, s] > now:
            for j in range(at.tables.first[s], at.tables.first[s + 1]):
                at.free[at.tables.holds[j]] = False


def hold(at: Clusters, row: Int, block: Int, until: Float) -> None:
    """Let the servers of a block be held until then."""
    for i in range(at.tables.size[block]):
        at.ends[row, at.tables.servers[block, i]] = until


def place(at: Clusters, times: TypeTimes, kind: Int, degree: Int) -> Float:
    """Note the first free block of each size that a job has at a degree, and return its time there, inf for none.

    Where one block holds all ops the time is that of its shape, else that on an empty cluster: shapes differ by less.
    """
    sizes: Int = 0
    last: Int = -1
    at.placed[:] = -1
    for j in range(len(at.placed)):
        if times.uses[kind, degree, j]:
            for b in range(len(at.free)):
                if at.free[b] and at.tables.degree[b] == j:
                    at.placed[j] = last = b
                    break
            if at.placed[j] < 0:
                return float(NEVER)
            if j > 0:
                sizes += 1
    time: Float = times.spread[kind, degree]
    if sizes == 1 and at.tables.degree[last] == degree and times.jct[kind, at.tables.shape[last]] < NEVER:
        time = times.jct[kind, at.tables.shape[last]]
    return time


def start(at: Clusters, row: Int, now: Float, choice: Int, times: TypeTimes, kind: Int, spread: bint) -> Float:
    """Let a job hold the servers that a choice gives it, and return until when; `spread` is by first fit."""
    if spread:
        since = now + EPSILON * times.sequential[kind]
        return now + fitted(at, row, since, now, choice, times, kind, NEVER)
    until: Float = now + times.jct[kind, at.tables.shape[choice]]
    hold(at, row, choice, until)
    return until


def fitted(
    at: Clusters, row: Int, since: Float, now: Float, degree: Int, times: TypeTimes, kind: Int, limit: Float
) -> Float:
    """Let a job hold what first fit finds for it among blocks that are free by `since`; return its time."""
    free_blocks(at, row, since)
    time = place(at, times, kind, degree)
    if time <= limit:
        for j in range(len(at.placed)):
            if at.placed[j] >= 0:
                hold(at, row, at.placed[j], now + time)
    return time


def ruled(at: Clusters, row: Int, now: Float, times: TypeTimes, kind: Int, limit: Float, degree: Int, way: Int) -> Int:
    """Return the block that a rule gives a job, or -1."""
    free_blocks(at, row, now)
    most: Int = len(at.placed)
    up: Int = most
    down: Int = -1
    for b in range(len(at.free)):  # of the degrees that would do, those about that of the rule
        if at.free[b] and times.jct[kind, at.tables.shape[b]] <= limit:
            q = at.tables.degree[b]
            if q < degree:
                down = max(down, q)
            else:
                up = min(up, q)
    if way != 1:
        degree = up if up < most else down
    elif up != degree:
        return -1
    best: Int = len(at.free) + 1
    found: Int = -1
    for b in range(len(at.free)):
        if at.tables.degree[b] == degree and at.free[b] and times.jct[kind, at.tables.shape[b]] <= limit:
            if way:
                return b
            lost = _lost(at, b)
            if lost < best:
                best, found = lost, b
    return found


def _lost(at: Clusters, block: Int) -> Int:
    """Return how many of the free blocks share a server with a block."""
    lost: Int = 0
    at.mark += 1
    for i in range(at.tables.size[block]):
        s = at.tables.servers[block, i]
        for j in range(at.tables.first[s], at.tables.first[s + 1]):
            other = at.tables.holds[j]
            if at.free[other] and at.stamp[other] != at.mark:
                at.stamp[other] = at.mark
                lost += 1
    return lost
