"""Scores to linear extensions: of the groups that are ready the one with the least score comes next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ...compiled import kernel
from ...compiled.kernel import Floats, lean_kernel
from ...compiled.routines import pop, push
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
        return _extended(-scores, *self._forward)

    def backward(self, scores: FloatArray) -> Ints:
        """Return the order made from its end, where the group of largest score is the last that has no successor left.

        Another extension than `forward`'s, unless the scores are those of a linear extension themselves.
        """
        return _extended(np.array(scores), *self._backward)[::-1].copy()


def _extended(value: FloatArray, after: Ints, first: Ints, needs: Ints) -> Ints:
    """Return the order in which the ready group of the highest value, of equals the first, comes next."""
    place = np.arange(len(value))
    order = np.empty_like(place)
    extend(value, place, after, first, needs.copy(), np.empty_like(place), order)
    return order


@lean_kernel
def extend(
    value: Floats, place: kernel.Ints, after: kernel.Ints, first: kernel.Ints, missing: kernel.Ints, heap: kernel.Ints,
    order: kernel.Ints,
) -> None:  # fmt: skip
    """Write the groups in order, see `_extended`.

    Args:
        value: of each group, float64 (G,).
        place: of each group, by which equals come, int64 (G,).
        after, first: its successors, see `ragged`.
        missing: how many predecessors it has, overwritten, int64 (G,).
        heap, order: are written, int64 (G,).
    """
    size = 0
    for g in range(len(value)):
        if missing[g] == 0:
            size = push(heap, size, g, value, place)
    for i in range(len(value)):
        g = heap[0]
        size = pop(heap, size, value, place)
        order[i] = g
        for j in range(first[g], first[g + 1]):
            x = after[j]
            missing[x] -= 1
            if missing[x] == 0:
                size = push(heap, size, x, value, place)
