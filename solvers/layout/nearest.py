"""Say what a model that fits nowhere lacks: the layout that comes nearest, what it needs, and what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gangplan.instances.layout.problem import OPTIMIZERS, LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import Memory
from gangplan.instances.quantities import quantity
from gangplan.instances.verify.layout import verify_layout

from ..run import never
from .family import LayoutFamily
from .shapes import chunks
from .space import Space
from .wish import ANY, Wish

_LOOKED_AT = 300
"""Families, those with the least weights and states on a GPU first, that are priced whole."""
_MOST = 64
"""Times as many GPUs as there are that are tried."""


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

    @property
    def fits(self) -> bool:
        """Whether there is as much as it needs."""
        return bool(sum(self.need) <= self.has)

    def words(self) -> str:
        """Say it in a sentence."""
        parts = zip(Memory._fields, self.need, strict=True)
        shown = ", ".join(f"{name} {quantity(size, 'B', 3)}" for name, size in parts)
        need, has = quantity(sum(self.need), "B", 3), quantity(self.has, "B", 3)
        return f"memory: {self.plan.summary()} comes nearest and needs {need} of a GPU's {has} ({shown})"


def nearest(problem: LayoutProblem, stopped: Callable[[], bool] = never, wish: Wish = ANY) -> Nearest | None:
    """Return the layout that needs least of its GPUs' memory, of equal stages that compute all again.

    Args:
        problem: what is split.
        stopped: whether to look at no more.
        wish: degrees that it is to have, chunks apart.
    """
    ample = replace(problem, pools=tuple(replace(pool, memory=1e30) for pool in problem.pools))
    space = Space(ample).within(wish._replace(VP=1, MB=wish.MB or 1))
    found: list[tuple[float, LayoutFamily]] = []
    for _, x in space.nodes():
        if stopped():
            break
        found += [(space.share(x, y), y) for _, y in space.families(x, np.inf)]
    count, best = space.count, None
    for _, family in sorted(found, key=lambda pair: pair[0])[:_LOOKED_AT]:
        p = family.stages
        sizes = [count // p + (s < count % p) for s in range(p)]
        layers = [max(n - (s == 0) - (s == p - 1), 0) for s, n in enumerate(sizes)]
        plan = family.plan(chunks(sizes, 1), [0] * p, layers)
        memory = verify_layout(ample, plan).memory
        has = np.array([problem.pools[k].memory for k in plan.pool])
        stage = int((memory.sum(axis=0) / has).argmax())
        if best is None or sum(best.need) / best.has > memory[:, stage].sum() / has[stage]:
            best = Nearest(plan, stage, Memory(*memory[:, stage].tolist()), float(has[stage]))
    return best


def remedies(problem: LayoutProblem, wish: Wish) -> list[str]:
    """Return what would make some layout fit, each change tried by itself: degrees, optimizer, more GPUs, or larger."""
    near = nearest(problem, wish=wish)
    found = []
    if wish != ANY and (other := nearest(problem)) and other.fits:
        found.append(f"other degrees ({other.plan.summary()})")
    for name, size in OPTIMIZERS.items():
        if size < OPTIMIZERS[problem.optimizer] and (other := nearest(replace(problem, optimizer=name), wish=wish)):
            found += [f"optimizer {name}"] * other.fits
    times = 2
    while times <= _MOST and not ((more := nearest(_larger(problem, times), wish=wish)) and more.fits):
        times *= 2
    found += [f"{times} times as many GPUs"] * (times <= _MOST)
    return found + ([f"GPUs of {quantity(sum(near.need) * 1.001, 'B', 4)}"] if near else [])


def _larger(problem: LayoutProblem, times: int) -> LayoutProblem:
    """Return the problem with so many times its GPUs, joined by the outermost links."""
    pools = []
    for pool in problem.pools:
        *inner, last = pool.levels
        levels = (*inner, replace(last, span=last.span * times))
        pools.append(replace(pool, count=pool.count * times, levels=levels))
    return replace(problem, pools=tuple(pools))
