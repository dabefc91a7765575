"""Longest paths through an op graph, which say what must come before and after an op."""

from __future__ import annotations

import numpy as np

from gangplan.instances import OpGraph

from .encoding import Floats


def longest(graph: OpGraph, seconds: Floats) -> tuple[Floats, Floats]:
    """Return the longest path that ends before each op, and the longest that starts with it, (n,) each."""
    order = np.empty(graph.n_ops, dtype=np.int64)
    order[graph.topological_order()] = np.arange(graph.n_ops)
    by_source = np.argsort(order[graph.source], kind="stable")
    pairs = list(zip(graph.source[by_source].tolist(), graph.target[by_source].tolist(), strict=True))
    own = seconds.tolist()
    before = [0.0] * graph.n_ops
    for a, b in pairs:  # all edges into a come before those out of it
        before[b] = max(before[b], before[a] + own[a])
    after = list(own)
    for a, b in reversed(pairs):
        after[a] = max(after[a], own[a] + after[b])
    return np.array(before), np.array(after)
