"""Groups that are dear to part become one before anything is placed: edge zeroing under limits, compiled.

The costliest edge first, as long as what it joins stays within its share of a device (Sarkar, 1989); and once more, for
what is to stay in one zone of devices near one another.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.compiled.kernel import Floats, Ints, lean_kernel
from gangplan.solvers.partition.step.improve.arrays import Arrays, neighbours

LIMITS = ("dear", "memory", "work")
"""From which time under way an edge counts, in mean ops; bytes of what is joined, as a share of the least device or
zone; its work, in even loads of these. With 0 for the first nothing is joined."""


def clustered(a: Arrays, ends: tuple[IntArray, IntArray], inside: FloatArray, zones: FloatArray) -> tuple[Arrays, Any]:
    """Return the problem with groups joined and bonded, and the new group of each group, `None` if it is its own.

    Args:
        a: the problem.
        ends: groups of the ends of each edge, int64 (m,) twice.
        inside: `LIMITS` of what shares a device.
        zones: `LIMITS` of what shares a zone.
    """
    label = None
    if inside[0] > 0:
        label = _joined(a, ends, inside, 1)
        a, ends = _coarse(a, ends, label), (label[ends[0]], label[ends[1]])
    if zones[0] > 0 and len(np.unique(a.zone)) < len(a.zone):
        per = int(np.bincount(a.zone).max())
        bond = _joined(a, ends, zones, per)
        a = a._replace(bond=bond)
    return a, label


def _joined(a: Arrays, ends: tuple[IntArray, IntArray], limits: FloatArray, devices: int) -> IntArray:
    """Return which groups become one, numbered from 0, int64 (G,)."""
    order, cost = a.costliest, a.way
    order = order[cost[order] >= limits[0] * a.unit]
    least = float(float(a.room.min()) * devices * limits[1])
    work = np.where(np.isfinite(a.work), a.work, 0.0).max(axis=0)
    root = np.arange(len(work))
    union(root, *ends, order, a.need.copy(), work, least, float(limits[2] * a.even * devices))
    found: Any = np.unique(root, return_inverse=True)[1].astype(np.int64).ravel()
    return cast(IntArray, found)


@lean_kernel
def union(
    root: Ints, u: Ints, v: Ints, order: Ints, bytes_: Floats, seconds: Floats, memory: float, load: float
) -> None:
    """Find a root for each group, those of the edges in `order` joined while they stay within the limits.

    Args:
        root: of each group, itself at first, int64 (G,).
        u, v: groups of the ends of each edge, int64 (m,).
        order: edges, int64.
        bytes_, seconds: of each group, then of all that have this root, float64 (G,).
        memory, load: what these may reach.
    """
    for e in order:
        x, y = u[e], v[e]
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        while root[y] != y:
            root[y] = root[root[y]]
            y = root[y]
        if x != y and bytes_[x] + bytes_[y] <= memory and seconds[x] + seconds[y] <= load:
            root[y] = x
            bytes_[x] += bytes_[y]
            seconds[x] += seconds[y]
    for g in range(len(root)):
        x = g
        while root[x] != x:
            x = root[x]
        root[g] = x


def _coarse(a: Arrays, ends: tuple[IntArray, IntArray], label: IntArray) -> Arrays:
    count = int(label.max()) + 1
    by_label = np.argsort(label, kind="stable")
    first = np.searchsorted(label[by_label], np.arange(count))
    need = np.add.reduceat(a.need[by_label], first)
    edge_first, edge, other = neighbours(label[ends[0]], label[ends[1]], count)
    return a._replace(
        group=label[a.group],
        work=np.ascontiguousarray(np.add.reduceat(a.work[:, by_label], first, axis=1)),
        need=need,
        heavy=np.argsort(-need, kind="stable").astype(np.int64),
        edge_first=edge_first,
        edge=edge,
        other=other,
        bond=np.full(count, -1),
    )
