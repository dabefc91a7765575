"""What is free on nodes in whole numbers: how many workers it is enough for, and what is held there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Long = NDArray[np.int64]
_ALL = slice(None)


def most_workers(free: Iterable[Long], need: Iterable[int], most: Long, nodes: Long | slice = _ALL) -> Long:
    """Return how many workers nodes can take, int64 (k,); less than 0 where something is overdrawn.

    Args:
        free: what is left of each resource, r rows of int64 (m,).
        need: of a worker, r whole numbers in the units of `free`; of which 0 is asked does not count.
        most: workers that each of the nodes may have at most, int64 (k,).
        nodes: which of the m nodes, by default all.
    """
    found = most.copy()
    for row, asked in zip(free, need, strict=True):
        if asked:
            np.minimum(found, row[nodes] // asked, out=found)
    return found


def held(node: Long, used: Long, m: int) -> Long:
    """Return what parts of gangs hold of each of m nodes, int64 (r, m).

    Args:
        node: where each part is, int64 (p,).
        used: what it holds there, int64 (r, p).
    """
    total = np.zeros((len(used), m), np.int64)
    for row, uses in zip(total, used, strict=True):
        np.add.at(row, node, uses)
    return total
