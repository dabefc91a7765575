"""What PAC-ML's published policy sees: the op graph of the job before it is split, job and cluster, and a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import OpGraph
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.graph import grouped

from ..jobs import JobType
from ..learned.tables import DEGREES

NODE = ("compute", "most_compute", "memory", "most_memory", "depth")
EDGE = ("size", "most_size")
JOB = (
    *("ops", "edges", "sequential"),
    *(f"{how}_{what}" for what in ("compute", "memory", "size") for how in ("total", "mean", "median")),
)
"""What is known of a model, as shares of the largest among all that arrive."""
STATE = ("acceptable", "beta", "busy", "running")
ACTIONS = 1 + len(DEGREES)
"""To reject the job, and each degree."""
FEATURES = len(JOB) + len(STATE) + ACTIONS
"""The mask is the last part."""


@dataclass(frozen=True, slots=True, eq=False)
class OpRows:
    """An op graph of n ops and m edges.

    Attributes:
        nodes: see `NODE`, as shares of the largest of the graph, float32 (n, 5).
        ends: source and target of each edge, int64 (2, m).
        edges: see `EDGE`, float32 (m, 2).
    """

    nodes: NDArray[np.float32]
    ends: NDArray[np.int64]
    edges: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedObservation:
    """One decision.

    Attributes:
        graph: of the job.
        features: see `JOB` and `STATE`, then the mask; float32 (FEATURES,).
        mask: which actions are allowed, bool (ACTIONS,): 0 rejects, the others are of no more servers than are free.
    """

    graph: OpRows
    features: NDArray[np.float32]
    mask: BoolArray


def op_rows(graph: OpGraph) -> OpRows:
    """Return a graph as the network reads it."""
    depth, source, target = np.zeros(graph.n_ops), graph.source.tolist(), graph.target.tolist()
    after = grouped(zip(source, target, strict=True), graph.n_ops)
    for u in graph.topological_order().tolist():
        depth[after[u]] = np.maximum(depth[after[u]], depth[u] + 1)
    parts = [*_shares(graph.time[0]), *_shares(graph.memory), _shares(depth)[0]]
    size = graph.memory[graph.source]  # an edge carries what its source holds
    return OpRows(
        np.stack(parts, axis=1).astype(np.float32), np.array([source, target], np.int64).reshape(2, -1),
        np.stack(_shares(size), axis=1).astype(np.float32),
    )  # fmt: skip


def _shares(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values as shares of the largest, and which are the largest."""
    most = values.max(initial=0.0)
    return values / (most or 1.0), (values == most).astype(np.float64)


def job_rows(types: Sequence[JobType]) -> FloatArray:
    """Return what is known of each model, float64 (types, len(JOB))."""
    rows = [
        [x.graph.n_ops, x.graph.n_edges, x.sequential]
        + [
            float(how(of))
            for of in (x.graph.time[0], x.graph.memory, x.graph.memory[x.graph.source])
            for how in (np.sum, np.mean, np.median)
        ]
        for x in types
    ]
    found = np.array(rows)
    return np.asarray(found / found.max(axis=0))


def describe(
    jobs: FloatArray, limit: FloatArray, beta: FloatArray, end: FloatArray, now: FloatArray
) -> NDArray[np.float32]:
    """Return the features of B decisions, float32 (B, FEATURES).

    Args:
        jobs: of their models, see `job_rows`, float64 (B, len(JOB)).
        limit: acceptable time, as a share of the longest sequential time of all models, float64 (B,).
        end: when each server is free, float64 (B, n); jobs that run are told by when they end.
    """
    end = np.sort(end, axis=1)
    busy = end > now[:, None]
    last = np.append(end[:, 1:] != end[:, :-1], np.ones((len(end), 1), bool), axis=1)
    count, running, n = busy.sum(axis=1), (busy & last).sum(axis=1), end.shape[1]
    state = np.stack([limit, beta, 1.0 - (n - count) / n, running / n], axis=1)
    return np.hstack([jobs, state, (n - count)[:, None] >= (0, *DEGREES)]).astype(np.float32)
