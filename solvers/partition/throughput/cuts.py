"""The best pipeline along some linear extensions at once: the recurrence of PipeDream on all of their prefixes.

f[c, J] = min over t and I before J on one of the orders of max(f[c - e(t), I], load(t, J minus I)),

c counting the devices used of each type. A stage runs along one order; where two orders have a prefix in common, as a
set, a plan may change from one to the other: it takes the best parts of both. The prefixes are gone through by size, so
that every load is computed once, and in pieces: a group that joins a stage pays for the outputs that it opens there,
and takes back those that it closes. A pair (c, J) is dropped that the devices left cannot finish below the cap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .cut_kernels import cut, extend, numbered
from .kernels import PipelineArrays, PipelineState, improve

Index = NDArray[np.int64]
Stages = list[tuple[int, Index]]
"""In order: device type, groups."""
STRICT = 1e-9
"""A plan must be below the cap by this much, relatively, to count."""
CELLS = 6_000_000
"""Numbers of f that one call may hold."""
MOVES = 400
"""Single moves of a polish, at most, which large graphs do not get through: the recurrence has balanced them."""


def forward(d: PipelineArrays, scores: FloatArray) -> Index:
    """Return the linear extension in which the ready group of least score comes first, int64 (G,)."""
    return extend(d, -scores)


def most_orders(d: PipelineArrays) -> int:
    """Return how many orders one call may cut."""
    return max(1, int(CELLS / (d.states * (d.groups + 1))))


def best_cut(d: PipelineArrays, orders: Index, cap: float) -> tuple[float, Stages] | None:
    """Return the least maximum load below `cap` seconds along the orders and its stages, `None` if there is none.

    Args:
        d: a contiguous quotient; types of devices that are not to be used have count 0.
        orders: linear extensions, int64 (K, G); those beyond `most_orders` are left out.
    """
    orders = np.ascontiguousarray(orders[: most_orders(d)])
    load, trace = cut(d, orders, *_ideals(orders), cap * (1 - STRICT))
    if not np.isfinite(load):
        return None
    return load, [(t, orders[k, i:j]) for k, i, j, t in trace[::-1].tolist()]


def _ideals(orders: Index) -> tuple[Index, int]:
    """Give numbers to the prefixes of the orders, int64 (K, G + 1); equal sets have one number, that of none is 0."""
    n = orders.shape[1]
    if len(orders) == 1:
        return np.arange(n + 1)[None, :], n + 1
    name: Index = np.random.default_rng(0).integers(1, 2**63 - 1, size=(n,))
    sums = np.zeros((len(orders), n + 1), dtype=np.int64)
    # sums wrap around; two sets of one size with one sum would need a coincidence of one in 2^63
    np.cumsum(name[orders], axis=1, out=sums[:, 1:])
    number = np.zeros_like(sums)
    return number, numbered(sums, number)


def polished(d: PipelineArrays, stages: Stages) -> tuple[float, Stages]:
    """Return the maximum load of a plan after single moves, seconds, and its stages."""
    kinds, stage = np.array([t for t, _ in stages]), stage_of(stages, d.groups)
    load = improve(d, PipelineState(d, stage, kinds), MOVES)
    return load, [(int(t), np.flatnonzero(stage == s)) for s, t in enumerate(kinds)]


def stage_of(stages: Stages, n: int) -> Index:
    """Return the stage of each group, int64 (G,)."""
    stage = np.empty(n, dtype=np.int64)
    for s, (_, groups) in enumerate(stages):
        stage[groups] = s
    return stage
