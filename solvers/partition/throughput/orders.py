"""Pipelines along orders of the groups, PipeDream's first: cut by the recurrence, polished and joined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...run import Run
from .bounds import counting_bound, impossible, load_ceiling
from .cuts import Index, Stages, best_cut, forward, polished, stage_of
from .ideals import linear_extension
from .kernels import PipelineArrays
from .pipeline import few_mixes
from .quotient import Quotient

_WIDEN = 3.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The load of the busiest device, seconds, and the stages in order, each a type of device and groups."""

    load: float
    stages: Stages


class OrderDecoder:
    """Turns orders of a problem's groups into pipelines; `q` is contiguous, plainly feasible, with few mixes of types.

    Attributes:
        order: PipeDream's, int64 (G,).
        place: of each group in it, as a share of the whole order, float64 (G,).
    """

    def __init__(self, q: Quotient) -> None:
        self.q, self.arrays = q, PipelineArrays(q)
        self.order: Index = np.array(linear_extension(q), dtype=np.int64)
        self.place = np.empty(q.n_groups)
        self.place[self.order] = np.arange(q.n_groups) / q.n_groups
        self.floor = counting_bound(q)
        self.ceiling = load_ceiling(q) * (1 + 1e-6)

    @cached_property
    def base(self) -> Pipeline | None:
        """PipeDream's plan, `None` if its order cannot be cut."""
        return self._cut(self.order[None, :], self.ceiling, self.floor)

    def cut(self, orders: Index, cap: float | None = None) -> Pipeline | None:
        """Return the best plan below `cap` seconds along some orders, int64 (K, G), `None` if there is none."""
        likely = self.floor if self.base is None else self.base.load
        return self._cut(orders, self.ceiling if cap is None else cap, likely)

    def _cut(self, orders: Index, cap: float, likely: float) -> Pipeline | None:
        # thresholds widen: low ones are fast
        threshold = min(cap, 1.02 * likely)
        while True:
            found = best_cut(self.arrays, orders, threshold)
            if found is not None:
                return Pipeline(*found)
            if threshold >= cap:
                return None
            threshold = min(cap, self.floor + _WIDEN * max(threshold - self.floor, 1e-3 * cap))

    def polished(self, pipeline: Pipeline) -> Pipeline:
        """Return a plan that is no worse by single moves."""
        load, stages = polished(self.arrays, pipeline.stages)
        if load >= pipeline.load:
            return pipeline
        return Pipeline(load, [(t, groups) for t, groups in stages if len(groups)])

    def join(self, pipelines: list[Pipeline]) -> Pipeline | None:
        """Return the best of some plans, or what the recurrence makes of all of their orders, polished."""
        if not pipelines:
            return None
        best = min(pipelines, key=lambda x: x.load)
        orders = np.unique([self.order_of(x) for x in pipelines], axis=0)
        found = self.cut(orders, best.load) if len(orders) > 1 else None
        return best if found is None else self.polished(found)

    def order_of(self, pipeline: Pipeline) -> Index:
        """Return an order along which the plan's stages come one after the other, int64 (G,)."""
        return forward(self.arrays, stage_of(pipeline.stages, self.q.n_groups) + self.place / 2)


def decoder_of(q: Quotient) -> OrderDecoder | None:
    """Return the decoder of a contiguous quotient, `None` if it plainly has no plan, or too many mixes of types."""
    few = few_mixes(q) if impossible(q) is None else None
    return None if few is None else OrderDecoder(few)


def pipedream(run: Run, decoder: OrderDecoder) -> None:
    """Offer the best pipeline along one linear extension: PipeDream's programme (SOSP 2019) without replication."""
    base = None if run.stopped else decoder.base
    # a plan a millisecond late is better than none
    if base is None or (run.stopped and run.plan is not None):
        return
    if run.objective is None or base.load < run.objective * (1 - 1e-9):
        run.offer(decoder.q.plan((t, groups.tolist()) for t, groups in base.stages), "pipedream")
