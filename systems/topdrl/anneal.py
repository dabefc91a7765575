"""Annealing over lists: the jobs of a window go first or later, elsewhere, wait for a place, or hold others up."""

from __future__ import annotations

from math import log

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Floats2, by_reference, kernel, lean
from gangplan.solvers.compiled.routines import below, sow, uniform

from .allocate import ALLOCATORS
from .arrays import Cluster, Jobs, State
from .decode import Listing, decode, restore, sort_in

RULES = len(ALLOCATORS)


@lean
def total(jobs: Jobs, finish: Floats) -> float:
    """Return the sum of the JCTs of the first jobs, all of `jobs`, seconds."""
    found = 0.0
    for job in range(len(jobs.submit)):
        found += finish[job] - jobs.submit[job]
    return found


@kernel
def anneal(
    jobs: Jobs, cluster: Cluster, state: State, scratch: State, of: Listing, best: Listing, costs: Floats2,
    low: int, high: int, turns: int, hot: float, cold: float, seed: int,
) -> float:  # fmt: skip
    """Change what a list says of jobs `low` to `high`, and leave the best list in `best`; return its sum of JCTs.

    Args:
        jobs: those that are played, the first ones of all.
        cluster: the nodes.
        state: before job `low` arrives.
        scratch: overwritten.
        of, best: the list, twice; keys are places, so that 1 is the step from one to the next.
        costs: communication costs worth waiting for, by GPUs, float64 (GPUs + 1, k).
        low, high: the jobs whose entries change, by their places in `jobs`.
        turns: lists that are tried.
        hot, cold: temperatures at the begin and the end, seconds of summed JCT.
        seed: of the random numbers.
    """
    sow(seed)
    table, on, now, plan = by_reference(jobs), by_reference(cluster), by_reference(scratch), by_reference(of)
    first, take = by_reference(state), np.zeros_like(state.free)
    n, fade = high - low, log(cold / hot)
    current = least = np.inf
    for turn in range(turns + 1):
        j, k = low + below(n), low + below(n)
        kind = uniform()
        if turn == 0:
            kind = 2.0
        elif kind < 0.6:  # someone near
            k = max(low, min(high - 1, j + below(41) - 20))
        key, other, allocator, most, blocks = of.key[j], of.key[k], of.allocator[j], of.most[j], of.blocks[j]
        if kind < 0.35:
            of.key[j] = other + 2 * uniform() - 1
        elif kind < 0.55:
            of.key[j], of.key[k] = other, key
        elif kind < 0.7:
            of.allocator[j] = below(RULES)
        elif kind < 0.85:
            of.most[j] = costs[jobs.gpus[j], below(costs.shape[1])]
        elif kind < 1:
            of.blocks[j] = 1 - blocks
        restore(now, first)
        sort_in(now, of.key, 0)
        decode(table, on, now, plan, take, np.inf)
        value = total(table, now.finish)
        heat = hot * np.exp(fade * turn / max(1, turns))
        if value < current - heat * log(1 - uniform()):
            current = value
            if value < least:
                least = value
                for i in range(low, high):
                    best.key[i], best.allocator[i] = of.key[i], of.allocator[i]
                    best.most[i], best.blocks[i] = of.most[i], of.blocks[i]
        elif turn > 0:
            of.key[k], of.key[j] = other, key
            of.allocator[j], of.most[j], of.blocks[j] = allocator, most, blocks
    return float(least)
