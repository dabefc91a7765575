"""Who holds which servers: the blocks that are free, and what a job takes when it starts."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Floats, Ints, kernel

from .tables import DEGREES, Tables, Times

_EPSILON = 1e-9


@kernel
def place_degree(free: Bools, q: int, m: int, tables: Tables, times: Times, placed: Ints) -> float:
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
def start_job(end: Floats, now: float, choice: int, m: int, tables: Tables, times: Times, published: bool) -> float:
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
def free_blocks(end: Floats, now: float, tables: Tables) -> Bools:
    """Return which blocks are free."""
    free = np.ones(len(tables.size), np.bool_)
    for s in range(tables.n):
        if end[s] > now:
            for j in range(tables.first[s], tables.first[s + 1]):
                free[tables.holds[j]] = False
    return free


@kernel
def hold(end: Floats, block: int, until: float, tables: Tables) -> None:
    """Let the servers of a block be held until then."""
    for i in range(tables.size[block]):
        end[tables.servers[block, i]] = until
