"""Pipelines from random keys: orders of the groups, cut by the recurrence, polished and joined (Bean 1994).

A key is added to a group's place in PipeDream's order, as a share of the whole order; the ready group of the least sum
comes next. Keys of zero give PipeDream's plan, so that no plan is worse than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gangplan.instances.arrays import FloatArray

from ...run import Run
from .bounds import counting_bound, impossible, load_ceiling
from .cuts import Index, Stages, backward, best_cut, forward, polished, stage_of
from .ideals import linear_extension
from .kernels import PipelineArrays
from .pipeline import few_mixes
from .quotient import Quotient

BOTH_ENDS = 800
"""Groups up to which an order is made from both of its ends: of more, one takes long enough."""
BATCH, BATCHES = 8, 16
"""Keys decoded between two joins, and how often at most."""
SPREADS = (1.0, 2.0)
"""Standard deviations of keys, in turn: shares of the whole order."""
_WIDEN = 3.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The load of the busiest device, seconds, and the stages in order, each a type of device and groups."""

    load: float
    stages: Stages


class KeyDecoder:
    """Turns keys of a problem's groups into pipelines; `q` is contiguous, plainly feasible, with few mixes of types."""

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

    def decode(self, keys: FloatArray) -> Pipeline | None:
        """Return the plan of one vector of keys, (G,), its orders cut and polished."""
        if not keys.any():
            return None if self.base is None else self.polished(self.base)
        at = self.place + keys
        ends = [forward(self.arrays, at)] + ([backward(self.arrays, at)] if self.q.n_groups <= BOTH_ENDS else [])
        found = self.cut(np.stack(ends))
        return None if found is None else self.polished(found)

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


def decoder_of(q: Quotient) -> KeyDecoder | None:
    """Return the decoder of a contiguous quotient, `None` if it plainly has no plan, or too many mixes of types."""
    few = few_mixes(q) if impossible(q) is None else None
    return None if few is None else KeyDecoder(few)


def pipedream(run: Run, decoder: KeyDecoder) -> None:
    """Offer the best pipeline along one linear extension: PipeDream's programme (SOSP 2019) without replication."""
    if not run.stopped and decoder.base is not None:
        _offer(run, decoder, [decoder.base], "pipedream")


def random_keys(run: Run, decoder: KeyDecoder) -> None:
    """Offer PipeDream's plan, then the best of ever more random keys and of what they have in common."""
    if run.stopped:
        return
    groups, rng = decoder.q.n_groups, np.random.default_rng(run.seed)
    found = [] if (first := decoder.decode(np.zeros(groups))) is None else [first]
    _offer(run, decoder, found)
    for _ in range(BATCHES):
        for i in range(BATCH):
            if run.stopped:
                return
            pipeline = decoder.decode(SPREADS[i % len(SPREADS)] * rng.standard_normal(groups))
            found += [] if pipeline is None else [pipeline]
        found = sorted(found, key=lambda x: x.load)[: 2 * BATCH]
        _offer(run, decoder, found)
        if not run.stopped and (joined := decoder.join(found)) is not None:
            found.insert(0, joined)
            _offer(run, decoder, found)


def _offer(run: Run, decoder: KeyDecoder, pipelines: list[Pipeline], by: str = "random_keys") -> None:
    # a plan a millisecond late is better than none
    if not pipelines or (run.stopped and run.plan is not None):
        return
    best = min(pipelines, key=lambda x: x.load)
    if run.objective is None or best.load < run.objective * (1 - 1e-9):
        run.offer(decoder.q.plan((t, groups.tolist()) for t, groups in best.stages), by)
