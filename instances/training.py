"""From the graph of a forward pass to the graph of a training step."""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray
from .graph import OpGraph


def with_backward(forward: OpGraph, time: FloatArray, memory: FloatArray) -> OpGraph:
    """Mirror every op of `forward` into a backward twin, ``<name>/backward``, on the same device.

    Op i of n gets the twin 2n-1-i, so that a graph in topological order stays in one. Backward edges are the
    forward edges reversed and carry the gradient of what those carry, as many bytes. One edge joins the last
    forward op (in topological order), where the loss is known, to its twin (Parsonson et al., arXiv 2301.13799).
    Weights are counted once, at the forward op; an op with no colocation class gets one for itself and its twin.

    Args:
        forward: a graph with no backward op.
        time: seconds of the twins, float64 (T, n), in the order of the forward ops.
        memory: bytes the twins occupy, float64 (n,), in the order of the forward ops.
    """
    n = forward.n_ops
    last = forward.topological_order()[-1]
    twin = np.arange(2 * n, dtype=np.int32)[::-1]
    lone = forward.colocation < 0
    colocation = forward.colocation.copy()
    colocation[lone] = np.arange(lone.sum(), dtype=np.int32) + colocation.max(initial=-1) + 1
    u, v = forward.source, forward.target
    return OpGraph(
        names=(*forward.names, *(f"{name}/backward" for name in reversed(forward.names))),
        device_types=forward.device_types,
        time=np.concatenate([forward.time, time[:, ::-1]], axis=1),
        memory=np.concatenate([forward.memory, memory[::-1]]),
        parameter_bytes=np.concatenate([forward.parameter_bytes, np.zeros(n)]),
        activation_bytes=np.concatenate([forward.activation_bytes, forward.activation_bytes[::-1]]),
        source=np.concatenate([u, twin[v], [last]]).astype(np.int32),
        target=np.concatenate([v, twin[u], [twin[last]]]).astype(np.int32),
        edge_bytes=np.concatenate([forward.edge_bytes, forward.edge_bytes, forward.activation_bytes[[last]]]),
        colocation=np.concatenate([colocation, colocation[::-1]]),
        twin=twin,
        backward=np.arange(2 * n) >= n,
    )
