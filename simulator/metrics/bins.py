"""What groups of rows hold on average in spans of time, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray


def means(
    group: NDArray[Any], groups: int, amount: NDArray[Any], start: FloatArray, end: FloatArray, edges: FloatArray
) -> FloatArray:
    """Return what each group holds on average between each edge and the next, float64 (groups, len(edges) - 1).

    Args:
        group: of each row, from 0.
        groups: how many there are.
        amount: of each row, held from `start` to `end`, which may be infinite.
        start, end: seconds.
        edges: seconds, ascending.
    """
    total = np.zeros((groups, len(edges)))
    for time, sign in ((start, 1.0), (end, -1.0)):
        # held from `time` on, up to an edge t: amount * (t - time)
        at = np.searchsorted(edges, time)
        there = at < len(edges)
        at, where = at[there], group[there]
        for weights, factor in ((amount[there], edges - edges[0]), (amount[there] * (edges[0] - time[there]), 1.0)):
            flat = np.bincount(where * len(edges) + at, weights=weights, minlength=total.size)
            total += sign * factor * np.cumsum(flat.reshape(total.shape), axis=1)
    return np.asarray(np.diff(total, axis=1) / np.diff(edges))
