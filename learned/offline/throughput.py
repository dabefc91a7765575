"""Throughput: the network moves groups in PipeDream's order, and the recurrence cuts along all orders at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from .recipe import kernels_of, recipe_of, solve_with
from .task import Candidate, Lesson, Task

if TYPE_CHECKING:
    from gangplan.solvers.partition.throughput.methods import Reduced
    from gangplan.solvers.partition.throughput.random_keys import KeyDecoder, Pipeline

    from .graphs import Split

ORDERS = 4
"""Orders of a plan besides PipeDream's: each is a column of scores, added to the places in that order."""
_SHARP = 20.0
"""Shares of the order to what is compared when an order is taught: a twentieth of it is one."""
_TAUGHT = 400
"""Pairs of groups of one plan that are taught at most."""


class Orders:
    """Pipelines of scores, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, keys: KeyDecoder) -> None:
        self.keys = keys

    def decode(self, scores: FloatArray) -> Candidate | None:
        """Cut along PipeDream's order and those that the scores make of it, then move single groups."""
        from gangplan.solvers.partition.throughput.cuts import forward

        keys = self.keys
        if not scores.any():
            return _candidate(None if keys.base is None else keys.polished(keys.base))
        moved = [forward(keys.arrays, keys.place + column) for column in scores.T]
        pipeline = keys.cut(np.stack([keys.order, *moved]))
        return _candidate(None if pipeline is None else keys.polished(pipeline))

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Cut along the orders of the best half of them at once."""
        best = sorted(candidates, key=lambda x: x.value)[: max(2, len(candidates) // 2)]
        return _candidate(self.keys.join([x.made for x in best]))

    def plan(self, candidate: Candidate) -> Any:
        """Return its plan."""
        return self.keys.q.plan((t, groups.tolist()) for t, groups in candidate.made.stages)


def _candidate(pipeline: Pipeline | None) -> Candidate | None:
    return None if pipeline is None else Candidate(pipeline.load, pipeline)


def _decoder(reduced: Reduced) -> Orders | None:
    return None if reduced.decoder is None else Orders(reduced.decoder)


def split(reduced: Reduced) -> Split:
    """Return groups, and the outputs from the first group that touches them to the others."""
    from .graphs import Split

    assert reduced.decoder is not None
    keys = reduced.decoder
    q = keys.q
    used, n = q.counts > 0, q.n_groups
    ends = [(min(pins), g, cost) for pins, cost in q.nets for g in pins if g != min(pins)]
    ends += [(a, b, 0.0) for a, b in q.edges]
    table = np.array(ends, np.float64).reshape(-1, 3)
    hosts = float((q.counts * q.host).sum() / max(q.counts.sum(), 1))
    return Split(
        np.array(q.time[used]), q.counts[used].astype(np.int64), np.array(q.memory), q.capacity[used],
        table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), np.ascontiguousarray(table[:, 2]),
        np.arange(n), keys.place, np.zeros(n), np.arange(n), (0.0, 0.0, hosts),
    )  # fmt: skip


def lesson(decoder: Orders, plan: Any) -> Lesson:
    """Say that groups of earlier stages come before those of later ones."""
    q, place = decoder.keys.q, decoder.keys.place
    stage = np.empty(q.n_groups, np.int64)
    stage[q.group_of] = plan.stage
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, q.n_groups, (2, 4 * _TAUGHT))
    a, b = (x[stage[a] < stage[b]][:_TAUGHT] for x in (a, b))
    offset, ones = _SHARP * (place[b] - place[a]), np.ones(len(a), np.float32)
    return Lesson(b, a, np.full(len(a), -1), offset.astype(np.float32), ones)


TASK = Task(
    "offline-throughput",
    "throughput",
    ORDERS,
    split,
    _decoder,
    lesson,
    (("random_keys", 0.3), ("local_search", 0.3), ("pipeline", 0.5), ("cpsat", 1.0)),
    _SHARP,
    (1.0, 0.3),
    1.0,
)
RECIPE = recipe_of(TASK, "the order along which an op graph is cut into a pipeline")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "throughput", "random_keys")
