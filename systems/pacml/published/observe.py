"""What PAC-ML's published policy sees: the op graph of the job before it is split, job and cluster, and a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import OpGraph
from gangplan.instances.arrays import BoolArray
from gangplan.instances.graph import grouped
from gangplan.solvers.compiled.kernel import Floats, Floats2, Singles, kernel

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


def _shares(values: Floats) -> tuple[Floats, Floats]:
    """Return values as shares of the largest, and which are the largest."""
    most = values.max(initial=0.0)
    return values / (most or 1.0), (values == most).astype(np.float64)


def job_rows(types: Sequence[JobType]) -> Floats2:
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


@kernel
def describe(job: Floats, limit: float, beta: float, end: Floats, now: float, row: Singles) -> None:
    """Write the features of one decision, float32 (FEATURES,).

    Args:
        job: of its model, see `job_rows`.
        limit: acceptable time, as a share of the longest sequential time of all models.
        end: when each server is free, float64 (n,); jobs that run are told by when they end.
    """
    free, running, n = 0, 0, len(end)
    for s in range(n):
        if end[s] <= now:
            free += 1
            continue
        running += 1
        for other in range(s):
            if end[other] == end[s]:
                running -= 1
                break
    at = len(job)
    row[:at] = job
    row[at], row[at + 1], row[at + 2], row[at + 3] = limit, beta, 1.0 - free / n, running / n
    row[at + 4] = 1.0
    for q in range(len(DEGREES)):
        row[at + 5 + q] = 1.0 if free >= DEGREES[q] else 0.0
