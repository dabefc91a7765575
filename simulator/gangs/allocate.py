"""Which GPUs a job gets: rules that choose idle GPUs close to one another.

`NEAREST`, `SIZED` and `CENTRE` are the three of TopDRL (Ayadi et al., JPDC 204, 2025), as far as they are known:
idle GPUs in the order of their distance from a seed. `CLOSEST` is ours, see `solvers/placement/online/closest.py`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gangplan.instances.arrays import require_choice
from gangplan.instances.lazy import OfLast
from gangplan.instances.placement.proximity import Proximity
from gangplan.solvers.compiled.kernel import Ints, lean, lean_kernel
from gangplan.solvers.placement.online.closest import best_fit, closest, rack_idle, take_idle

from ..engine import View
from ..engine.jobs import Rows
from .arrays import Cluster, cluster_of
from .step import total

NEAREST, SIZED, CENTRE, CLOSEST = range(4)
ALLOCATORS = ("nearest", "sized", "centre", "closest")


@lean
def choose(rule: int, need: int, cluster: Cluster, free: Ints, take: Ints) -> bool:
    """Write how many GPUs a job of `need` gets of each node; return whether it fits.

    Args:
        rule: one of `ALLOCATORS`, by its place.
        free: idle GPUs of each node, int64 (m,).
        take: the answer, int64 (m,).
    """
    take[:] = 0
    if total(free) < max(need, 1):
        return False
    if rule == CLOSEST:
        closest(need, cluster.begin, free, take)
    else:
        if rule == NEAREST:
            seed = 0
            while free[seed] == 0:
                seed += 1
        elif rule == SIZED:
            seed = _seed_by_size(need, cluster, free)
        else:
            seed = _centre(cluster, free)
        _around(seed, need, cluster, free, take)
    return True


@lean
def _around(seed: int, need: int, cluster: Cluster, free: Ints, take: Ints) -> None:
    """Take the idle GPUs of a node, then those of its rack, then others, each in their order."""
    left = need - take_idle(seed, need, free, take)
    rack = cluster.rack[seed]
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        if node != seed:
            left -= take_idle(node, left, free, take)
    for node in range(len(free)):
        if cluster.rack[node] != rack:
            left -= take_idle(node, left, free, take)


@lean
def _seed_by_size(need: int, cluster: Cluster, free: Ints) -> int:
    """Return the seed: one GPU goes to the rack with the fewest idle ones, up to a node's to the best fit.

    A larger job, and one that fits on no node, begins at the emptiest node of the rack with the most idle GPUs.
    """
    if need == 1:
        return _emptiest(cluster, free, _rack_by_idle(cluster, free, False))
    best = best_fit(need, 0, len(free), free)
    if best >= 0 and need <= 4:
        return best
    return _emptiest(cluster, free, _rack_by_idle(cluster, free, True))


@lean
def _rack_by_idle(cluster: Cluster, free: Ints, most: bool) -> int:
    """Return the rack with the most idle GPUs, or with the fewest but some."""
    best, found = -1, 0
    for rack in range(len(cluster.begin) - 1):
        idle = rack_idle(cluster.begin, free, rack)
        if idle > 0 and (best < 0 or (idle > found if most else idle < found)):
            best, found = rack, idle
    return best


@lean
def _emptiest(cluster: Cluster, free: Ints, rack: int) -> int:
    best = cluster.begin[rack]
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        if free[node] > free[best]:
            best = node
    return int(best)


@lean
def _centre(cluster: Cluster, free: Ints) -> int:
    """Return the node of the middle one of the idle GPUs of the rack that has the most."""
    rack = _rack_by_idle(cluster, free, True)
    left = rack_idle(cluster.begin, free, rack) // 2
    node = cluster.begin[rack]
    while left >= free[node]:
        left -= free[node]
        node += 1
    return int(node)


@lean_kernel
def allocate(rule: int, need: int, cluster: Cluster, free: Ints, take: Ints) -> bool:
    """Do what `choose` does, for Python."""
    return choose(rule, need, cluster, free, take)


class Close:
    """Place a job on the GPUs that an allocator gives it, of each node the first idle ones, told apart."""

    def __init__(self, allocator: str = "closest") -> None:
        require_choice(allocator, "allocator", ALLOCATORS)
        self._rule = ALLOCATORS.index(allocator)
        self._cluster = OfLast(partial(cluster_of, proximity=Proximity()))

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Return where a job starts now, None if it does not fit."""
        cluster, take = self._cluster(view.fleet), np.zeros(view.fleet.n_nodes, dtype=np.int64)
        if not allocate(self._rule, degree, cluster, view.free, take):
            return None
        nodes = np.flatnonzero(take).tolist()
        chosen = [np.flatnonzero(view.idle[cluster.first[k] : cluster.first[k + 1]])[: take[k]] for k in nodes]
        return Rows(np.repeat(np.arange(len(take)), take), np.ones(degree, dtype=np.int64), np.concatenate(chosen))
