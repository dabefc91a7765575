"""A job's op graph as arrays: what a network reads of it, with no need of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import OpGraph
from gangplan.instances.arrays import FloatArray

OP = ("time", "memory", "depth", "backward", "parents", "children")
"""Features of an op: shares of the largest, so that units do not matter."""


class Ops(NamedTuple):
    """The ops of k jobs in one graph of o ops and e edges.

    Attributes:
        x: features of the ops, see `OP`, float32 (o, len(OP)).
        edges: int64 (2, 2 e), each edge in both directions.
        job: of each op, int64 (o,).
    """

    x: NDArray[np.float32]
    edges: NDArray[np.int64]
    job: NDArray[np.int64]


def read(graphs: Sequence[OpGraph]) -> Ops:
    """Return the op graphs of some jobs, unsplit."""
    xs, edges, jobs, start = [], [], [], 0
    for k, graph in enumerate(graphs):
        ends = np.stack([graph.source, graph.target]).astype(np.int64)
        parents, children = (np.bincount(end, minlength=graph.n_ops) for end in (ends[1], ends[0]))
        shares = (_share(values) for values in (graph.time[0], graph.memory, _depth(graph)))
        columns = (*shares, graph.backward, parents / 4, children / 4)
        xs.append(np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1))
        edges.append(np.concatenate([ends, ends[::-1]], axis=1) + start)
        jobs.append(np.full(graph.n_ops, k, dtype=np.int64))
        start += graph.n_ops
    return Ops(np.concatenate(xs), np.concatenate(edges, axis=1), np.concatenate(jobs))


def _share(values: FloatArray) -> FloatArray:
    largest = values.max(initial=0.0)
    return np.asarray(values / largest) if largest > 0 else values


def _depth(graph: OpGraph) -> FloatArray:
    """Return how many ops the longest path to each op has; its place in some order would depend on names."""
    children: list[list[int]] = [[] for _ in range(graph.n_ops)]
    for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        children[a].append(b)
    depth = np.zeros(graph.n_ops)
    for op in graph.topological_order().tolist():
        for child in children[op]:
            depth[child] = max(depth[child], depth[op] + 1)
    return depth
