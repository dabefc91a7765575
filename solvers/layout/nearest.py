"""Say what a model that fits nowhere lacks: the layout that comes nearest, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import Memory
from gangplan.instances.quantities import quantity
from gangplan.instances.verify.layout import verify_layout

from .family import Costs, Family
from .shapes import chunks
from .space import Space
from .wish import Wish

_LOOKED_AT = 300
"""Families, those with the least weights and states on a GPU first, that are priced whole."""


class Nearest(NamedTuple):
    """The layout that needs least of the memory that its GPUs have.

    Attributes:
        plan: it computes all layers again.
        stage: the one that needs most.
        need: bytes of it by part.
        has: bytes of its GPU.
    """

    plan: LayoutPlan
    stage: int
    need: Memory
    has: float

    def words(self) -> str:
        """Say it in a sentence."""
        parts = zip(Memory._fields, self.need, strict=True)
        shown = ", ".join(f"{name} {quantity(size, 'B', 3)}" for name, size in parts)
        need, has = quantity(sum(self.need), "B", 3), quantity(self.has, "B", 3)
        return f"memory: {self.plan.summary()} comes nearest and needs {need} of a GPU's {has} ({shown})"


def nearest(
    problem: LayoutProblem, stopped: Callable[[], bool] = lambda: False, wish: Wish | None = None
) -> Nearest | None:
    """Return the layout that needs least of its GPUs' memory, of equal stages that compute all again.

    Args:
        problem: what is split.
        stopped: whether to look at no more.
        wish: degrees that it is to have, chunks apart.
    """
    wanted = (wish or Wish())._replace(VP=1)
    alone = wanted.MB or 1
    ample = replace(problem, pools=tuple(replace(pool, memory=1e30) for pool in problem.pools))
    space = Space(ample, Costs(ample))
    found: list[tuple[float, Family]] = []
    for x in space.combinations():
        if stopped():
            break
        if x.micro_batch == alone and wanted.allows(x) and space.bound(x) < inf:
            found += [(space.share(x, y), y) for _, y in space.families(x, inf) if wanted.is_met(y)]
    count, best = len(space.costs.kinds), None
    for _, family in sorted(found, key=lambda pair: pair[0])[:_LOOKED_AT]:
        p = family.stages
        sizes = chunks([count // p + (s < count % p) for s in range(p)], 1)
        plan = family.plan(sizes, [0] * p, [count] * p)
        memory = verify_layout(ample, plan).memory
        has = np.array([problem.pools[k].memory for k in plan.pool])
        stage = int((memory.sum(axis=0) / has).argmax())
        if best is None or sum(best.need) / best.has > memory[:, stage].sum() / has[stage]:
            best = Nearest(plan, stage, Memory(*memory[:, stage].tolist()), float(has[stage]))
    return best
