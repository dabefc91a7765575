"""A family of layouts: all degrees are given, where stages end and what they compute again is open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.layout.costs import BlockCosts, Degrees, block_costs
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import waiting
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
    zero_bubble: bool = False

    @property
    def waiting(self) -> float:
        """Share of a micro-batch of all other stages that one waits."""
        return waiting(self.virtual, self.zero_bubble)

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
            self.zero_bubble,
        )


class Chain(NamedTuple):
    """What each kind of block costs on one segment, and what many in a row cost at least.

    Attributes:
        costs: of each kind.
        seconds: of a micro-batch, nothing computed again, float64 (K,).
        whole: the same of the whole chain.
        shortest: least seconds of so many blocks in a row, from one on, float64 (L,).
    """

    costs: BlockCosts
    seconds: FloatArray
    whole: float
    shortest: FloatArray


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

    def _blocks(self, pool: int, at: Degrees) -> BlockCosts | None:
        return block_costs(self.problem, self.problem.pools[pool], at)

    def _chain(self, pool: int, at: Degrees) -> Chain | None:
        costs = self.blocks(pool, at)
        if costs is None:
            return None
        seconds = (costs.compute + costs.shown.sum(axis=0)).sum(axis=0)
        total = np.concatenate([[0.0], np.cumsum(seconds[self.kinds])])
        shortest = np.array([(total[n:] - total[:-n]).min() for n in range(1, len(total))])
        return Chain(costs, seconds, float(total[-1]), shortest)
