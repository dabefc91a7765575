"""Write a split graph out in full: one op for each sub-op, one edge for each replicated edge."""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray, IntArray
from .graph import OpGraph
from .splitting import SplitGraph


def expand(split: SplitGraph) -> OpGraph:
    """Return the graph of all sub-ops, ``<name>/<i>`` for sub-op i of an op that is split.

    Sub-op i of a backward op is the twin of sub-op i of its forward op, and the two share a colocation class. The
    gradient exchange between siblings goes both ways, so it is no part of an acyclic graph: see `sync_edges`.
    """
    graph, copies, first = split.graph, split.copies, split.first
    op = np.repeat(np.arange(graph.n_ops), copies)
    index = np.arange(split.n_sub_ops) - first[op]
    twin = np.where(graph.twin[op] >= 0, first[graph.twin[op]] + index, -1)
    # classes of sub-ops: by the class of the op and the index of the sub-op
    colocation = np.full(len(op), -1)
    classed = graph.colocation[op] >= 0
    label = graph.colocation[op].astype(np.int64) * split.degree + index
    _, colocation[classed] = np.unique(label[classed], return_inverse=True)
    source, target, edge = replicated_edges(split)
    return OpGraph(
        names=tuple(
            f"{graph.names[i]}/{j}" if copies[i] > 1 else graph.names[i] for i, j in zip(op, index, strict=True)
        ),
        device_types=graph.device_types,
        time=graph.time[:, op] / copies[op],
        memory=split.memory[op],
        parameter_bytes=graph.parameter_bytes[op] / copies[op],
        activation_bytes=graph.activation_bytes[op] / copies[op],
        source=source,
        target=target,
        edge_bytes=split.edge_bytes[edge],
        colocation=colocation,
        twin=twin,
        backward=graph.backward[op],
    )


def replicated_edges(split: SplitGraph) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of each replicated edge and the edge it comes from: int32 (E,) each, edge by edge."""
    u, v = split.graph.source, split.graph.target
    wide = split.copies[v]
    count = split.copies[u] * wide
    edge = np.repeat(np.arange(len(u)), count)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count)
    source = split.first[u[edge]] + nth // wide[edge]
    target = split.first[v[edge]] + nth % wide[edge]
    return source.astype(np.int32), target.astype(np.int32), edge.astype(np.int32)


def sync_edges(split: SplitGraph) -> tuple[IntArray, IntArray, FloatArray]:
    """Return source, target (int32) and bytes of every gradient exchange: all ordered pairs of siblings, op by op."""
    ends: list[tuple[IntArray, IntArray]] = []
    sizes: list[FloatArray] = []
    for op in np.flatnonzero(split.graph.backward & (split.copies > 1)).tolist():
        k = int(split.copies[op])
        a, b = np.nonzero(~np.eye(k, dtype=bool))
        ends.append(((a + split.first[op]).astype(np.int32), (b + split.first[op]).astype(np.int32)))
        sizes.append(np.full(k * (k - 1), split.sync_bytes[op]))
    if not ends:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    return np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends]), np.concatenate(sizes)
