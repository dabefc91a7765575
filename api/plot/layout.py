"""Where ops lie in a picture: columns by depth, rows so that edges cross little, the backward pass below, mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import OpGraph

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
SWEEPS = 8
GAP = 1.6
"""Rows between the forward and the backward half."""


def columns(graph: OpGraph) -> IntArray:
    """Return the column of each op, int (n,): its depth; an op of the backward pass stands under its twin."""
    u, v = graph.source.astype(np.int64), graph.target.astype(np.int64)
    back = graph.backward
    ahead = ~back[u] & ~back[v]
    behind = back[u] & back[v]
    order = graph.topological_order()
    column = np.where(back, _depth(order[::-1], v[behind], u[behind]), _depth(order, u[ahead], v[ahead]))
    twinned = back & (graph.twin >= 0)
    column[twinned] = column[graph.twin[twinned]]
    return column


def _depth(order: NDArray[np.int32], u: IntArray, v: IntArray) -> IntArray:
    """Return the longest path to each op, in edges; an op that nothing leads to stands right before its first use."""
    n = len(order)
    depth = np.zeros(n, dtype=np.int64)
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    by_source = np.argsort(position[u], kind="stable")
    for a, b in zip(u[by_source].tolist(), v[by_source].tolist(), strict=True):
        depth[b] = max(depth[b], depth[a] + 1)
    latest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(latest, u, depth[v] - 1)
    source = np.bincount(v, minlength=n) == 0
    late = source & (latest < np.iinfo(np.int64).max)
    depth[late] = latest[late]
    return depth


def rows(graph: OpGraph, column: IntArray) -> FloatArray:
    """Return the height of each op, float (n,): forward ops above zero, backward ops below.

    Within a column ops are ordered by the mean height of their neighbours, in a few sweeps (the barycentre
    method of Sugiyama, Tagawa and Toda, 1981).
    """
    n = graph.n_ops
    back = graph.backward
    group = column * 2 + back
    u, v = graph.source, graph.target
    same = back[u] == back[v]
    ends = np.concatenate([u[same], v[same]])
    others = np.concatenate([v[same], u[same]])
    degree = np.bincount(ends, minlength=n)
    y = _centred(group, np.arange(n, dtype=np.float64))
    for _ in range(SWEEPS):
        mean = np.bincount(ends, weights=y[others], minlength=n) / np.maximum(degree, 1)
        y = _centred(group, np.where(degree > 0, mean, y))
    twinned = back & (graph.twin >= 0)
    if twinned.any():
        mirror = y.copy()
        mirror[twinned] = -y[graph.twin[twinned]]
        y = np.where(back, _centred(group, mirror), y)
    if not back.any() or back.all():
        return y
    shifted: FloatArray = np.where(back, y - y[back].max() - GAP / 2, y - y[~back].min() + GAP / 2)
    return shifted


def _centred(group: IntArray, key: FloatArray) -> FloatArray:
    """Return heights one apart in each group, in the order of `key`, centred on zero."""
    order = np.lexsort((np.arange(len(key)), key, group))
    _, first, count = np.unique(group[order], return_index=True, return_counts=True)
    y = np.empty(len(key))
    y[order] = np.repeat((count - 1) / 2.0, count) - (np.arange(len(key)) - np.repeat(first, count))
    return -y
