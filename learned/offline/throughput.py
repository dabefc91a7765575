"""Throughput: a rule makes four orders of PipeDream's, and the recurrence cuts along all of them at once."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from .recipe import GRAPHS, kernels_of, recipe_of, solve_with
from .task import Candidate, Task

if TYPE_CHECKING:
    from gangplan.solvers.partition.throughput.methods import Reduced
    from gangplan.solvers.partition.throughput.random_keys import KeyDecoder, Pipeline

    from .graphs import Split

RULES = 256
"""Rules that are drawn; the first is PipeDream's order alone."""
ORDERS = 4
"""Orders of a rule besides PipeDream's."""
_SIZES = (0.5, 1.0, 2.0)
"""How far orders leave PipeDream's, in shares of it."""


class Orders:
    """Pipelines along several orders at once, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, reduced: Reduced, keys: KeyDecoder) -> None:
        from .graphs import along, graph

        self.keys, self.along = keys, along(graph(split(reduced)))

    def decode(self, rule: int) -> Candidate | None:
        """Cut along PipeDream's order and those of the rule, then move single groups."""
        from gangplan.solvers.partition.throughput.cuts import forward

        keys = self.keys
        if rule == 0:
            return _candidate(None if keys.base is None else keys.polished(keys.base))
        moved = [forward(keys.arrays, keys.place + column) for column in (self.along @ drawn()[rule]).T]
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


@cache
def drawn() -> FloatArray:
    """Return what each rule adds to places for figures of the groups, float64 (rules, figures, orders)."""
    from .graphs import ALONG

    rng = np.random.default_rng(0)
    sizes = rng.choice(_SIZES, (RULES, 1, 1))
    return np.asarray(sizes * rng.standard_normal((RULES, len(ALONG), ORDERS)))


TASK = Task(
    "offline-throughput",
    "throughput",
    RULES,
    GRAPHS.schema,
    lambda given: GRAPHS.graph(split(given)),
    lambda given, _=None: None if given.decoder is None else Orders(given, given.decoder),
    (("random_keys", 0.3), ("local_search", 0.3), ("pipeline", 0.5), ("cpsat", 1.0)),
)
RECIPE = recipe_of(TASK, "the orders along which an op graph is cut into a pipeline")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "throughput", "random_keys")
