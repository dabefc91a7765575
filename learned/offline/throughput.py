"""Throughput: scores say where along the pipeline each group stands, four times over, and the recurrence cuts these."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.verify import verify

from .graphs import Split, graph, schema, standard
from .policy import solve_with
from .task import DecodedPlan, OfflineTask, PlanLesson

if TYPE_CHECKING:
    from gangplan.solvers.partition.throughput.methods import ReducedThroughput
    from gangplan.solvers.partition.throughput.orders import OrderDecoder, Pipeline

ORDERS = 4
"""Orders that are cut at once, besides PipeDream's."""


class Pipelines:
    """Pipelines along several orders at once, see `gangplan.learned.offline.task.ScoreDecoder`."""

    def __init__(self, keys: OrderDecoder) -> None:
        self.decoder, self.keys = keys, standard(keys.place)

    def decode(self, choice: Any) -> DecodedPlan | None:
        """Cut along PipeDream's order and those of its places with scores added, then move single groups."""
        from gangplan.solvers.partition.throughput.cuts import forward

        d = self.decoder
        if not np.any(choice):
            return _candidate(None if d.base is None else d.polished(d.base))
        pipeline = d.cut(np.stack([d.order, *(forward(d.arrays, self.keys + x) for x in choice.T)]))
        return _candidate(None if pipeline is None else d.polished(pipeline))

    def join(self, candidates: list[DecodedPlan]) -> DecodedPlan | None:
        """Cut along the orders of the best half of them at once."""
        best = sorted(candidates, key=lambda x: x.value)[: max(2, len(candidates) // 2)]
        return _candidate(self.decoder.join([x.made for x in best]))

    def plan(self, candidate: DecodedPlan) -> Any:
        """Return its plan."""
        return self.decoder.q.plan((t, groups.tolist()) for t, groups in candidate.made.stages)

    def lesson(self, plan: Any) -> PlanLesson:
        """Return the stage of each group, by PipeDream's plan where that is as good: of equal optima it is learned."""
        from gangplan.solvers.partition.throughput.cuts import stage_of

        d, value = self.decoder, verify(self.decoder.q.problem, plan).objective
        if d.base is not None and value is not None and d.base.load <= value * (1 + 1e-9):
            return PlanLesson(stage_of(d.base.stages, d.q.n_groups), self.keys)
        stage = np.empty(d.q.n_groups, np.int64)
        stage[d.q.group_of] = plan.stage
        return PlanLesson(stage, self.keys)


def _candidate(pipeline: Pipeline | None) -> DecodedPlan | None:
    return None if pipeline is None else DecodedPlan(pipeline.load, pipeline)


def split(reduced: ReducedThroughput) -> Split:
    """Return groups, and the outputs from the first group that touches them to the others."""
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
        np.arange(n), keys.place, hosts,
    )  # fmt: skip


TASK = OfflineTask(
    "offline-throughput",
    "throughput",
    (ORDERS, 0),
    schema,
    lambda given: graph(split(given)),
    lambda given, _=None: None if given.decoder is None else Pipelines(given.decoder),
    (("local_search", 0.3), ("pipeline", 0.5), ("cpsat", 1.0)),
)
gnn = partial(solve_with, TASK)
