"""A family of layouts: all degrees are given, where stages end and what they compute again is open."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.layout.costs import Degrees
from gangplan.instances.layout.problem import LayoutPlan
from gangplan.instances.layout.stage import waiting


class Combination(NamedTuple):
    """Degrees of tensor parallelism by pool (0: the pool is not used), of the others, and the micro-batch."""

    tensor: tuple[int, ...]
    context: int
    expert: int
    micro_batch: int

    def degrees(self, pool: int, data: int = 0, zero: int = 1) -> Degrees:
        """Return the degrees of a stage on a pool, by default with the fewest replicas that share all experts."""
        least = self.expert // gcd(self.expert, self.tensor[pool] * self.context)
        return Degrees(self.tensor[pool], self.context, self.expert, data or least, self.micro_batch, zero)


class Segment(NamedTuple):
    """Stages in a row on one pool, with one degree of tensor parallelism."""

    pool: int
    tensor: int
    stages: int


class LayoutFamily(NamedTuple):
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

    @property
    def of_stage(self) -> list[Segment]:
        """The segment of each stage."""
        return [x for x in self.segments for _ in range(x.stages)]

    def degrees(self, segment: Segment) -> Degrees:
        """Return the degrees of the stages of a segment."""
        return Degrees(segment.tensor, self.context, self.expert, self.data, self.micro_batch, self.zero)

    def plan(self, blocks: Any, selective: Sequence[int], full: Sequence[int]) -> LayoutPlan:
        """Return the layout with such chunks and so many layers computed again."""
        pool, tensor = np.array([x[:2] for x in self.of_stage]).T
        again = np.array(selective, dtype=np.int32), np.array(full, dtype=np.int32)
        degrees: Any = self[1:]
        return LayoutPlan(pool, tensor, np.array(blocks), *again, *degrees)
