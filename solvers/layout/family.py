"""A family of layouts: all degrees are given, where stages end and what they compute again is open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.layout.costs import BlockCosts, Degrees, block_costs
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.transformer import Transformer


class Segment(NamedTuple):
    """Stages in a row on one pool, with one degree of tensor parallelism."""

    pool: int
    tensor: int
    stages: int


class Family(NamedTuple):
    """All degrees of a layout; see `LayoutPlan`."""

    segments: tuple[Segment, ...]
    data: int
    context: int = 1
    expert: int = 1
    micro_batch: int = 1
    virtual: int = 1
    zero: int = 1

    @property
    def stages(self) -> int:
        """How many."""
        return sum(x.stages for x in self.segments)

    def degrees(self, segment: Segment) -> Degrees:
        """Return the degrees of the stages of a segment."""
        return Degrees(segment.tensor, self.context, self.expert, self.data, self.micro_batch, self.zero)

    def plan(self, blocks: IntArray, selective: Sequence[int], full: Sequence[int]) -> LayoutPlan:
        """Return the layout with such chunks and so many layers computed again."""
        count = [x.stages for x in self.segments]
        return LayoutPlan(
            np.repeat([x.pool for x in self.segments], count),
            np.repeat([x.tensor for x in self.segments], count),
            blocks,
            np.array(selective, dtype=np.int32),
            np.array(full, dtype=np.int32),
            self.data,
            self.context,
            self.expert,
            self.micro_batch,
            self.virtual,
            self.zero,
        )


class Chain(NamedTuple):
    """What blocks cost on one segment, summed from the first on: float64 (L + 1,) each.

    Attributes:
        seconds: of a micro-batch, nothing computed again.
        forward, backward: parts of it.
        again: seconds more, with norms and activation functions or all computed again.
        saved: bytes of a micro-batch less, likewise.
        kept: bytes of a micro-batch.
        own, experts: parameters.
        update: seconds of the optimizer.
        layers: how many blocks are layers.
        gathered: bytes of weights in use at once, of each block, float64 (L,).
        handed: seconds to hand a micro-batch on.
    """

    seconds: FloatArray
    forward: FloatArray
    backward: FloatArray
    again: tuple[FloatArray, FloatArray]
    saved: tuple[FloatArray, FloatArray]
    kept: FloatArray
    own: FloatArray
    experts: FloatArray
    update: FloatArray
    layers: FloatArray
    gathered: FloatArray
    handed: float


class Costs:
    """What blocks of a problem cost, by degrees; computed once.

    Args:
        problem: what is split.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem = problem
        model = problem.model
        self.kinds = model.chain() if isinstance(model, Transformer) else np.arange(len(model.blocks), dtype=np.int32)
        self.blocks = lru_cache(None)(self._blocks)
        self.chain = lru_cache(4096)(self._chain)
        self.flat = lru_cache(1024)(self._flat)

    @property
    def mixed(self) -> bool:
        """Whether there is more than one kind of layer."""
        return len(set(self.kinds[1:-1].tolist())) > 1

    def _blocks(self, pool: int, at: Degrees) -> BlockCosts | None:
        return block_costs(self.problem, self.problem.pools[pool], at)

    def _chain(self, pool: int, at: Degrees) -> Chain | None:
        costs = self.blocks(pool, at)
        return None if costs is None else _summed(costs, self.kinds, np.arange(len(costs.weights)))

    def _flat(self, pool: int, at: Degrees) -> Chain | None:
        """Return the chain in which each layer has the least of the costs of all kinds of layer."""
        costs = self.blocks(pool, at)
        if costs is None:
            return None
        own = np.unique(self.kinds[1:-1])
        kinds, cheap = self.kinds.copy(), np.arange(len(costs.weights))
        kinds[1:-1] = own[0]
        return _summed(costs, kinds, cheap, own)


def _summed(costs: BlockCosts, kinds: IntArray, cheap: IntArray, own: IntArray | None = None) -> Chain:
    """Return sums along a chain; of a kind in `own` the least over these kinds counts."""

    def least(row: FloatArray) -> FloatArray:
        found = row[cheap]
        if own is not None:
            found = found.copy()
            found[own] = row[own].min()
        return found[kinds]

    def total(row: FloatArray) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(row)])

    layer = np.ones(len(kinds), dtype=bool)
    layer[[0, -1]] = False
    forward, backward = costs.compute + costs.shown.sum(axis=0)
    saved = [np.where(layer, least(costs.kept[0] - costs.kept[i]), 0.0) for i in (1, 2)]
    if own is not None:  # as much is saved as by any
        saved = [np.where(layer, (costs.kept[0] - costs.kept[i])[own].max(), 0.0) for i in (1, 2)]
    again = [np.where(layer, least(costs.again[i]), 0.0) for i in (1, 2)]
    return Chain(
        total(least(forward + backward)),
        total(least(forward)),
        total(least(backward)),
        (total(again[0]), total(again[1])),
        (total(saved[0]), total(saved[1])),
        total(least(costs.kept[0])),
        total(least(costs.weights)),
        total(least(costs.expert_weights)),
        total(least(costs.update)),
        total(layer.astype(float)),
        least(costs.gathered),
        costs.handed,
    )
