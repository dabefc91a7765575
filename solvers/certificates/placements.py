"""Certificates of placements: prices of gangs, what each costs alone or the duals of patterns, and a search by them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.certificates.covers import MOST, Cover, CoversCertificate
from gangplan.instances.certificates.document import Proved
from gangplan.instances.certificates.exact import Budget
from gangplan.instances.certificates.nodes import NodeFamilies

from ..placement.pattern_bound import PatternBound
from ..placement.prepare import PreparedBatch
from ..run import Run
from .bounds import BELOW, LONGEST, rounded

_JOBS = 4_000
"""Jobs times kinds of nodes beyond which nothing is tried: their options alone take most of a minute."""
_PRICED = 0.3
"""Share of the time that is left for prices."""


def candidates(run: Run, left: Callable[[], float]) -> Iterator[Proved]:
    """Yield certificates of a placement problem: prices alone, then a search that refutes what is below the plan.

    It is the checker's own search, so that what comes out of it is checked.
    """
    problem: Any = run.problem
    kinds = 1 + len({name for one in problem.running for name in one.nodes})
    if problem.goal != "slowdown" or len(problem.jobs) * kinds > _JOBS:
        return
    nodes, value = NodeFamilies(problem), Fraction(run.objective or 0)
    threshold = value * (1 - BELOW)
    best: Cover | None = None
    for prices in (_alone(nodes), _paid(run, nodes, left)):
        try:
            cover = Cover(nodes, prices, _TimedBudget(left))
        except InstanceError:
            continue  # there is no time for a search like that
        yield _proved(cover, Fraction(0), prices)
        if best is None or cover.value > best.value:
            best, chosen = cover, prices
    if best is None or best.value * nodes.unit >= threshold:
        return
    try:
        best.search(threshold)
    except InstanceError:
        return  # a plan may be below the threshold, for all that is counted here, or time is up
    yield _proved(best, threshold, chosen)


def _proved(cover: Cover, threshold: Fraction, prices: tuple[Fraction, ...]) -> Proved:
    certificate = CoversCertificate(threshold, prices, MOST - cover.steps.left)
    return Proved(certificate, certificate.proves(cover))


class _TimedBudget(Budget):
    """As many steps as the checker allows, as long as there is time."""

    def __init__(self, left: Callable[[], float]) -> None:
        super().__init__(MOST)
        self._left, self._cpu = left, time.process_time() + LONGEST

    def take(self, steps: int = 1) -> None:
        """Take some; raise if there are no more, or no time."""
        super().take(steps)
        if self._left() < 0 or time.process_time() > self._cpu:
            raise InstanceError("steps", "take too long")


def _alone(nodes: NodeFamilies) -> tuple[Fraction, ...]:
    """Return what a gang of each family costs alone, where that is least."""
    least: dict[int, int] = {}
    for options, _, _ in nodes.kinds:
        for x in options:
            least[x.family] = min(x.whole(), least.get(x.family, x.whole()))
    return tuple(least.get(f, 0) * nodes.unit for f in range(len(nodes.families)))


def _paid(run: Run, nodes: NodeFamilies, left: Callable[[], float]) -> tuple[Fraction, ...]:
    """Return the prices of the linear programme over patterns, on top of what a gang's own weight adds."""
    inner = Run(run.problem, time_limit=max(0.0, left() * _PRICED), seed=run.seed)
    relaxation = PatternBound(inner, PreparedBatch(run.problem))
    relaxation.solve()
    prices = relaxation.prices()
    return rounded([prices[family.first] for family in nodes.families])
