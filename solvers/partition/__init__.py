"""Partition: which device runs which op of one job, a folder an objective."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import IntArray
from gangplan.instances.graph import grouped
from gangplan.instances.lazy import Later

offer_draft = Later(f"{__name__}.draft:draft")
"""Offers a plan from a few sums, which most solves do without."""


def groups_of(colocation: IntArray) -> IntArray:
    """Return a group for each op, int32 (n,): one for each class, one for each op without."""
    alone = colocation.max(initial=-1) + 1 + np.arange(len(colocation))
    return by_first(np.where(colocation < 0, alone, colocation))


def saved(nets: Iterable[tuple[Collection[int], float]], into: int) -> float:
    """Return what merging a group into another saves on its nets (pins, cost) at least, seconds: see `dominate`."""
    # rounded once: a rounding as large as an output's cost may be more than all that is done
    return fsum(cost if into in pins else -cost for pins, cost in nets if into not in pins or len(pins) == 2)


def both_ways(edges: Iterable[tuple[int, int]], count: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the predecessors and the successors of each of so many groups or items."""
    edges = list(edges)
    return grouped(((b, a) for a, b in edges), count), grouped(edges, count)


def ragged(owner: NDArray[np.integer[Any]], value: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return (values, first) by owner: those of owner i are ``values[first[i]:first[i + 1]]``, in their order."""
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]).astype(np.int64)
    return value[np.argsort(owner, kind="stable")], first


def reached(order: Iterable[int], near: Sequence[Sequence[int]]) -> list[int]:
    """Return what each can be reached from, as bit sets: those near it, which come before it in the order, and on."""
    found = [0] * len(near)
    for v in order:
        for u in near[v]:
            found[v] |= found[u] | 1 << u
    return found


def by_first(label: NDArray[np.integer[Any]]) -> IntArray:
    """Return labels numbered as they come, so that ties are broken as the user ordered the ops, int32."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse.ravel()], dtype=np.int32)
