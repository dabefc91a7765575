"""What should go first: upward ranks, the classic priority of list scheduling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances.arrays import FloatArray

from .model import Prepared
from .schedule import Decoder


def mean_rank(p: Prepared) -> list[float]:
    """Return the longest way from the start of each op to the end, with mean times and mean delays, seconds.

    HEFT's upward rank (Topcuoglu, Hariri, Wu, IEEE TPDS 2002, Eq. 3).
    """
    able = p.time < float("inf")
    count = np.bincount(p.type_of, minlength=len(p.time)).astype(float)
    took = ((count @ np.where(able, p.time, 0.0)) / (count @ able).clip(min=1.0)).tolist()
    return _upward(p, took, _mean_delay(p).tolist())


def _mean_delay(p: Prepared) -> FloatArray:
    if not len(p.used_levels):
        return p.fastest * 0.0
    pairs = [(p.level == x).sum() for x in p.used_levels]
    total = sum(n * p.delay[x] for n, x in zip(pairs, p.used_levels.tolist(), strict=True))
    return total / p.n_devices**2  # type: ignore[no-any-return]


def _upward(p: Prepared, took: Sequence[float], delay: Sequence[float]) -> list[float]:
    rank = [0.0] * p.n
    first, index = p.successors[0].tolist(), p.successors[1].tolist()
    for v in p.order[::-1].tolist():
        away = delay[v]
        rank[v] = took[v] + max([away + rank[w] for w in index[first[v] : first[v + 1]]], default=0.0)
    return rank


def placed_rank(decoder: Decoder, device: Sequence[int], reverse: Sequence[int]) -> list[float]:
    """Return the longest way from the start of each op to the end, with the times and delays of a placement, seconds.

    Args:
        decoder: of the problem.
        device: of each op.
        reverse: the ops, every edge backward.
    """
    rank = [0.0] * len(device)
    seconds, delay, level, after = decoder.seconds, decoder.delay, decoder.level, decoder.after
    for v in reverse:
        d = device[v]
        far, best = level[d], 0.0
        for w in after[v]:
            x = rank[w] + delay[far[device[w]]][v]
            if x > best:  # noqa: PLR1730
                best = x
        rank[v] = best + seconds[d][v]
    return rank


def ranked(p: Prepared, rank: Sequence[float]) -> list[int]:
    """Return the ops by falling rank, every edge forward; ties in topological order."""
    return sorted(p.order.tolist(), key=rank.__getitem__, reverse=True)
