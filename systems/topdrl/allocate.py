"""Which GPUs a job gets: rules that choose idle GPUs close to one another.

`NEAREST`, `SIZED` and `CENTRE` are the three of TopDRL (Ayadi et al., JPDC 204, 2025), as far as they are known:
idle GPUs in the order of their distance from a seed. `CLOSEST` is ours, and greedy: the best fitting node, else the
rack where the fewest nodes do, of those the fullest, else the rack with the most idle GPUs and on. Where it takes
several racks, others may cost less.
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import require_choice
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.engine import View
from gangplan.simulator.engine.jobs import Rows
from gangplan.solvers.compiled.kernel import Ints, lean, lean_kernel

from .arrays import Cluster, cluster_of

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
    idle = 0
    for node in range(len(free)):
        idle += free[node]
    if idle < need:
        return False
    if rule == CLOSEST:
        _closest(need, cluster, free, take)
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
    left = need - _take(seed, need, free, take)
    rack = cluster.rack[seed]
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        if node != seed:
            left -= _take(node, left, free, take)
    for node in range(len(free)):
        if cluster.rack[node] != rack:
            left -= _take(node, left, free, take)


@lean
def _take(node: int, most: int, free: Ints, take: Ints) -> int:
    take[node] = min(most, free[node])
    return int(take[node])


@lean
def _seed_by_size(need: int, cluster: Cluster, free: Ints) -> int:
    """Return the seed: one GPU goes to the rack with the fewest idle ones, up to a node's to the best fit.

    A larger job, and one that fits on no node, begins at the emptiest node of the rack with the most idle GPUs.
    """
    if need == 1:
        return _emptiest(cluster, free, _rack_by_idle(cluster, free, False))
    best = _best_fit(need, 0, len(free), free)
    if best >= 0 and need <= 4:
        return best
    return _emptiest(cluster, free, _rack_by_idle(cluster, free, True))


@lean
def _best_fit(need: int, begin: int, end: int, free: Ints) -> int:
    """Return the node with the fewest idle GPUs that holds the job, -1 if there is none."""
    best = -1
    for node in range(begin, end):
        if free[node] >= need and (best < 0 or free[node] < free[best]):
            best = node
    return best


@lean
def _rack_idle(cluster: Cluster, free: Ints, rack: int) -> int:
    idle = 0
    for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
        idle += free[node]
    return idle


@lean
def _rack_by_idle(cluster: Cluster, free: Ints, most: bool) -> int:
    """Return the rack with the most idle GPUs, or with the fewest but some."""
    best, found = -1, 0
    for rack in range(len(cluster.begin) - 1):
        idle = _rack_idle(cluster, free, rack)
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
    left = _rack_idle(cluster, free, rack) // 2
    node = cluster.begin[rack]
    while left >= free[node]:
        left -= free[node]
        node += 1
    return int(node)


@lean
def _closest(need: int, cluster: Cluster, free: Ints, take: Ints) -> None:
    """Take the best fitting node; else the rack where the fewest nodes do, of those the fullest; else whole racks."""
    best = _best_fit(need, 0, len(free), free)
    if best >= 0:
        take[best] = need
        return
    left = need
    while left > 0:
        found, nodes, idle = -1, 0, 0
        for rack in range(len(cluster.begin) - 1):
            there = _rack_idle(cluster, free, rack) - _rack_idle(cluster, take, rack)
            if there < left:
                continue
            needs = _nodes_for(left, cluster, free, rack)
            if found < 0 or needs < nodes or (needs == nodes and there < idle):
                found, nodes, idle = rack, needs, there
        if found < 0:  # no rack holds the rest: all of the one with the most idle GPUs, and on
            for rack in range(len(cluster.begin) - 1):
                there = _rack_idle(cluster, free, rack) - _rack_idle(cluster, take, rack)
                if found < 0 or there > idle:
                    found, idle = rack, there
        left -= _fill(left, cluster, free, take, found)


@lean
def _nodes_for(need: int, cluster: Cluster, free: Ints, rack: int) -> int:
    """Return the least number of nodes of a rack that hold so many GPUs, which it has."""
    begin, end = cluster.begin[rack], cluster.begin[rack + 1]
    size, nodes, left = 0, 0, need
    for node in range(begin, end):
        size = max(size, free[node])
    while left > 0:
        for node in range(begin, end):
            if free[node] == size and left > 0:
                left -= size
                nodes += 1
        size -= 1
    return nodes


@lean
def _fill(need: int, cluster: Cluster, free: Ints, take: Ints, rack: int) -> int:
    """Take the largest nodes of a rack one after the other, the last one as the best fit; return how many GPUs."""
    begin, end = cluster.begin[rack], cluster.begin[rack + 1]
    left = need
    while left > 0:
        largest, last = -1, -1
        for node in range(begin, end):
            if take[node] or not free[node]:
                continue
            if free[node] >= left and (last < 0 or free[node] < free[last]):
                last = node
            if largest < 0 or free[node] > free[largest]:
                largest = node
        if last < 0:
            last = largest
        if last < 0:
            break
        left -= _take(last, left, free, take)
    return need - left


@lean_kernel
def allocate(rule: int, need: int, cluster: Cluster, free: Ints, take: Ints) -> bool:
    """Do what `choose` does, for Python."""
    return choose(rule, need, cluster, free, take)


class Close:
    """Place a job on the GPUs that an allocator gives it, of each node the first idle ones, told apart."""

    def __init__(self, allocator: str = "closest") -> None:
        require_choice(allocator, "allocator", ALLOCATORS)
        self._rule = ALLOCATORS.index(allocator)
        self._of: Fleet | None = None
        self._cluster: Cluster

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Return where a job starts now, None if it does not fit."""
        if self._of is not view.fleet:
            self._of, self._cluster = view.fleet, cluster_of(view.fleet, Proximity())
        first, take = self._cluster.first, np.zeros(view.fleet.n_nodes, dtype=np.int64)
        if not allocate(self._rule, degree, self._cluster, view.free, take):
            return None
        nodes = np.flatnonzero(take).tolist()
        chosen = [np.flatnonzero(view.idle[first[k] : first[k + 1]])[: take[k]] for k in nodes]
        return Rows(np.repeat(np.arange(len(take)), take), np.ones(degree, dtype=np.int64), np.concatenate(chosen))
