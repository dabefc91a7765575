"""What the compiled loops read, and write: the blocks of a cluster, the times of job types, who holds which servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.ramp import collective_cost
from gangplan.solvers.compiled.kernel import Bools, Floats, Floats2, Halves2, Ints, Ints3, kernel

from ..jobs import Blocks, JobType

Long = NDArray[np.int64]

DEGREES = (1, 2, 4, 6, 8, 16)
"""The degrees that the policy knows; a cluster may lack blocks of some."""

NEAR = 1.05
"""A shape is fast if its collectives cost at most this much more than on the best shape of the degree."""


class BlockTables(NamedTuple):
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

    servers: Halves2
    size: Ints
    degree: Ints
    shape: Ints
    fast: Ints
    first: Ints
    holds: Ints
    n: int


class TypeTimes(NamedTuple):
    """Job types on one cluster; k types, s shapes. Times are in whatever unit the types have.

    Attributes:
        jct: completion time inside a block of each shape, float64 (k, s), inf where there is none.
        sequential: completion time on one server, float64 (k,).
        efficiency: speed-up over degree at degrees 4 and 16 at best, float64 (k, 2); 0 without a block.
        uses: whether published first fit looks for a block of each size at each degree, int64 (k, degrees, sizes).
        spread: completion time by published first fit on an empty cluster, float64 (k, degrees), inf where it fails.
    """

    jct: Floats2
    sequential: Floats
    efficiency: Floats2
    uses: Ints3
    spread: Floats2


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
    first, holds = blocks.incidence
    fast = (slope <= NEAR * least).astype(np.int64)
    return BlockTables(
        np.ascontiguousarray(blocks.servers), blocks.size, blocks.degree, blocks.shape, fast,
        first.astype(np.int64), holds.astype(np.int64), blocks.n_servers,
    )  # fmt: skip


def times_of(types: Sequence[JobType], *, published: bool = False) -> TypeTimes:
    """Return the arrays of some job types, all on one cluster; without `published` nothing of first fit."""
    jct = np.array([kind.jct for kind in types])
    sequential = np.array([kind.sequential for kind in types])
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
    return TypeTimes(jct, sequential, efficiency, uses, spread)


_EPSILON = 1e-9


@kernel
def place_degree(free: Bools, q: int, m: int, tables: BlockTables, times: TypeTimes, placed: Ints) -> float:
    """Write the first free block of each size that a job has at a degree, and return its time there, inf for none.

    Where one block holds all ops the time is that of its shape, else that on an empty cluster: shapes differ by less.
    """
    placed[:] = -1
    sizes, last = 0, -1
    for j in range(len(placed)):
        if times.uses[m, q, j]:
            for b in range(len(free)):
                if free[b] and tables.degree[b] == j:
                    placed[j] = last = b
                    break
            if placed[j] < 0:
                return np.inf
            sizes += j > 0
    time = times.jct[m, tables.shape[last]] if sizes == 1 and tables.degree[last] == q else np.inf
    return float(time if time < np.inf else times.spread[m, q])


@kernel
def start_job(
    end: Floats, now: float, choice: int, m: int, tables: BlockTables, times: TypeTimes, published: bool
) -> float:
    """Let a job hold the servers that a choice gives it, and return until when."""
    if not published:
        until = now + times.jct[m, tables.shape[choice]]
        hold(end, choice, until, tables)
        return float(until)
    free = free_blocks(end, now + _EPSILON * times.sequential[m], tables)
    placed = np.zeros(len(DEGREES), np.int64)
    until = now + place_degree(free, choice, m, tables, times, placed)
    for j in range(len(placed)):
        if placed[j] >= 0:
            hold(end, placed[j], until, tables)
    return float(until)


@kernel
def free_blocks(end: Floats, now: float, tables: BlockTables) -> Bools:
    """Return which blocks are free."""
    free = np.ones(len(tables.size), np.bool_)
    for s in range(tables.n):
        if end[s] > now:
            for j in range(tables.first[s], tables.first[s + 1]):
                free[tables.holds[j]] = False
    return free


@kernel
def hold(end: Floats, block: int, until: float, tables: BlockTables) -> None:
    """Let the servers of a block be held until then."""
    for i in range(tables.size[block]):
        end[tables.servers[block, i]] = until
