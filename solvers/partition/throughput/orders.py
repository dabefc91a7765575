"""Scores to linear extensions: of the groups that are ready the one with the least score comes next."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .quotient import Quotient

Ints = NDArray[np.int64]


def ragged(lists: list[list[int]]) -> tuple[Ints, Ints]:
    """Return lists as one array, and where each begins and the last ends."""
    first = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(x) for x in lists], out=first[1:])
    return np.array([v for x in lists for v in x], dtype=np.int64), first


class Orders:
    """Makes linear extensions of one quotient.

    Args:
        q: groups in topological order.
    """

    def __init__(self, q: Quotient) -> None:
        before, after = q.neighbours
        self.n = q.n_groups
        self._forward = *ragged(after), np.array([len(x) for x in before], dtype=np.int64)
        self._backward = *ragged(before), np.array([len(x) for x in after], dtype=np.int64)

    def forward(self, scores: FloatArray) -> Ints:
        """Return the order in which the ready group of least score comes first, int64 (G,)."""
        found: Ints = _extend(scores, *self._forward)
        return found

    def backward(self, scores: FloatArray) -> Ints:
        """Return the order made from its end, where the group of largest score is the last that has no successor left.

        Another extension than `forward`'s, unless the scores are those of a linear extension themselves.
        """
        found: Ints = _extend(-scores, *self._backward)
        return found[::-1].copy()


@njit(cache=True)
def _extend(scores: Any, after: Any, first: Any, needs: Any) -> Any:
    n = len(scores)
    missing = needs.copy()
    ready = [(0.0, 0)]
    ready.pop()
    for g in range(n):
        if missing[g] == 0:
            heapq.heappush(ready, (scores[g], g))
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        _, g = heapq.heappop(ready)
        order[i] = g
        for x in after[first[g] : first[g + 1]]:
            missing[x] -= 1
            if missing[x] == 0:
                heapq.heappush(ready, (scores[x], x))
    return order
