"""Which GPUs a job gets: rules that choose idle GPUs close to one another.

`NEAREST`, `SIZED` and `CENTRE` are the three of TopDRL (Ayadi et al., JPDC 204, 2025), as far as they are known:
idle GPUs in the order of their distance from a seed. `CLOSEST` is ours, see `solvers/placement/online/closest.py`.
"""

from __future__ import annotations

from functools import partial

import cython
import numpy as np
from cython import bint

from gangplan.instances.arrays import require_choice
from gangplan.instances.lazy import OfLast
from gangplan.instances.placement.proximity import Proximity

from ..engine import EngineView
from ..engine.jobs import Rows
from .arrays import cluster_of

if not cython.compiled:
    from gangplan.solvers.native import Int, Ints
    from gangplan.solvers.placement.online.closest import best_fit, closest, rack_idle, take_idle

    from .arrays import GpuRacks

    NEAREST, SIZED, CENTRE, CLOSEST = range(4)
ALLOCATORS = ("nearest", "sized", "centre", "closest")


def choose(rule: Int, need: Int, cluster: GpuRacks, free: Ints, take: Ints) -> bool:
    """Write how many GPUs a job of `need` gets of each node; return whether it fits.

    Args:
        rule: one of `ALLOCATORS`, by its place.
        free: idle GPUs of each node, int64 (m,).
        take: the answer, int64 (m,).
    """
    take[:] = 0
    left: Int = max(need, 1)
    for node in range(len(free)):
        left -= free[node]
        if left <= 0:
            break
    if left > 0:
        return False
    if rule == CLOSEST:
        closest(need, cluster.begin, free, take)
        return True
    seed: Int = 0
    if rule == NEAREST:
        while free[seed] == 0:
            seed += 1
    elif rule == SIZED:
        seed = _seed_by_size(need, cluster, free)
    else:
        seed = _centre(cluster, free)
    _around(seed, need, cluster, free, take)
    return True


def _around(seed: Int, need: Int, cluster: GpuRacks, free: Ints, take: Ints) -> None:
    """Take the idle GPUs of a node, then those of its rack, then others, each in their order."""
    left: Int = need - take_idle(seed, need, free, take)
    rack = cluster.rack[seed]
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        if left > 0 and node != seed:
            left -= take_idle(node, left, free, take)
    for node in range(len(free)):
        if left <= 0:
            break
        if cluster.rack[node] != rack:
            left -= take_idle(node, left, free, take)


def _seed_by_size(need: Int, cluster: GpuRacks, free: Ints) -> Int:
    """Return the seed: one GPU goes to the rack with the fewest idle ones, up to a node's to the best fit.

    A larger job, and one that fits on no node, begins at the emptiest node of the rack with the most idle GPUs.
    """
    if need == 1:
        return _emptiest(cluster, free, _rack_by_idle(cluster, free, False))
    best = best_fit(need, 0, len(free), free)
    if best >= 0 and need <= 4:
        return best
    return _emptiest(cluster, free, _rack_by_idle(cluster, free, True))


def _rack_by_idle(cluster: GpuRacks, free: Ints, most: bint) -> Int:
    """Return the rack with the most idle GPUs, or with the fewest but some."""
    best: Int = -1
    found: Int = 0
    for rack in range(len(cluster.begin) - 1):
        idle = rack_idle(cluster.begin, free, rack)
        if idle > 0 and (best < 0 or (idle > found if most else idle < found)):
            best, found = rack, idle
    return best


def _emptiest(cluster: GpuRacks, free: Ints, rack: Int) -> Int:
    best: Int = cluster.begin[rack]
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        if free[node] > free[best]:
            best = node
    return best


def _centre(cluster: GpuRacks, free: Ints) -> Int:
    """Return the node of the middle one of the idle GPUs of the rack that has the most."""
    rack = _rack_by_idle(cluster, free, True)
    left: Int = rack_idle(cluster.begin, free, rack) // 2
    node: Int = cluster.begin[rack]
    while left >= free[node]:
        left -= free[node]
        node += 1
    return node


def allocate(rule: Int, need: Int, cluster: GpuRacks, free: Ints, take: Ints) -> bool:
    """Do what `choose` does, for Python."""
    if not len(free) == len(take) == len(cluster.rack):
        raise ValueError(f"{len(free)} and {len(take)} GPUs are not of the {len(cluster.rack)} nodes")
    return choose(rule, need, cluster, free, take)


class Close:
    """Place a job on the GPUs that an allocator gives it, of each node the first idle ones, told apart."""

    def __init__(self, allocator: str = "closest") -> None:
        require_choice(allocator, "allocator", ALLOCATORS)
        self._rule = ALLOCATORS.index(allocator)
        self._cluster = OfLast(partial(cluster_of, proximity=Proximity()))

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Return where a job starts now, None if it does not fit."""
        cluster, take = self._cluster(view.fleet), np.zeros(view.fleet.n_nodes, dtype=np.int64)
        if not allocate(self._rule, degree, cluster, view.free, take):
            return None
        nodes = np.flatnonzero(take).tolist()
        chosen = [np.flatnonzero(view.idle[cluster.first[k] : cluster.first[k + 1]])[: take[k]] for k in nodes]
        return Rows(np.repeat(np.arange(len(take)), take), np.ones(degree, dtype=np.int64), np.concatenate(chosen))
