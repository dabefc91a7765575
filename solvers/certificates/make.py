"""Make the certificate of a bound: the simple arguments first, then what takes time, each checked as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.certificates.document import Certificate, write
from gangplan.instances.certificates.ideals import Ideals
from gangplan.instances.certificates.rows import model_of
from gangplan.instances.certificates.stages import Recurrence
from gangplan.instances.certificates.times import Prices

from ..run import Run
from .bounds import rounded, simple

_BELOW = Fraction(1, 2 * 10**6)
"""How far the threshold of a tree is below the plan, as a share: half of what `OPTIMAL_GAP` allows."""
_SPLITS = 20_000
"""Nodes of a tree: its document has some megabytes then."""
_PACE = 120_000
"""Steps that a search over ideals takes in a second."""
_NUMBERS = 10**8
"""Numbers that the recurrence of stages looks at in a second."""
_SHARE = 0.4
"""What it may take of the time that is left: a tree comes after it."""
_LONGEST = 60.0
"""Seconds that it may take at most, and so whoever checks the certificate."""
_COLUMNS = 4_000
"""Ops times devices beyond which a tree is not begun: its first linear programme would take most of a minute."""


class Proved(NamedTuple):
    """A certificate and what the checker says that it proves."""

    certificate: Certificate
    bound: Fraction | float

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of a `Result`."""
        return {"certificate": write(self.certificate), "certified": self.bound}


def certify(run: Run, seconds: float) -> Proved | None:
    """Return the best certificate of a bound that `seconds` allow for; `None` if there is none above 0.

    Args:
        run: a solve that is over: its problem, its plan, its objective.
        seconds: from this call; the last argument begun may take a little longer.
    """
    end = time.perf_counter() + seconds

    def left() -> float:
        return end - time.perf_counter()

    best: Proved | None = None
    for certificate in _candidates(run, left):
        try:
            bound = verify_bound(run.problem, certificate)
        except InstanceError:
            continue  # a search that takes longer than it may
        if run.objective is not None and bound > Fraction(run.objective):
            raise AssertionError(f"{certificate.argument} proves {bound}, above a plan of {run.objective}")
        if bound > (best.bound if best else 0):
            best = Proved(certificate, bound)
        if left() <= 0 or (best and certifies(best.bound, run.objective, run.zero)):
            break
    return best


def _candidates(run: Run, left: Callable[[], float]) -> Iterator[Certificate]:
    problem = run.problem
    yield from simple(problem)
    if problem.objective == "schedule" and problem.goal != "makespan":
        yield from _prices(run, left)
    if problem.objective not in ("throughput", "stages") or not run.objective:
        return
    threshold = Fraction(run.objective) * (1 - _BELOW)
    if problem.objective == "stages":
        yield Recurrence(threshold, int(_NUMBERS * min(left(), _LONGEST)))
        return
    if problem.variant == "contiguous" and np.count_nonzero(problem.cluster.counts()) == 1:
        yield Ideals(threshold, int(_PACE * min(left() * _SHARE, _LONGEST)))
    if problem.graph.n_ops * problem.cluster.n_devices <= _COLUMNS:
        from .branch import Search

        yield Search(model_of(problem, threshold), threshold, left, _SPLITS).solve()


def _prices(run: Run, left: Callable[[], float]) -> Iterator[Prices]:
    """Yield no prices at all, which has each job alone, then those of the volume algorithm."""
    yield Prices((), ())
    from ..schedule.prepare import ShiftedRun, prepare
    from ..schedule.starts import prices

    inner = Run(run.problem, time_limit=inf, seed=run.seed)
    inner.callbacks = (lambda _: left() <= 0,)
    p = prepare(run.problem)
    if run.plan is not None:
        inner.offer(run.plan, "plan")
    inner.stop_reason = None
    found = prices(ShiftedRun(inner, p), p)
    if found is not None:
        zero, step = Fraction(p.zero) + Fraction(found.grid.zero), Fraction(found.grid.step)
        yield merged([zero + k * step for k in range(len(found.grid.pi) + 1)], rounded(found.grid.pi))


def merged(times: list[Fraction], prices: tuple[Fraction, ...]) -> Prices:
    """Return prices over time without intervals that cost the same as the one before, or nothing at the end."""
    steps = [(a, b, price) for (a, b), price in zip(pairwise(times), prices, strict=True)]
    while steps and not steps[-1][2]:
        steps.pop()
    kept = [x for k, x in enumerate(steps) if not k or x[2] != steps[k - 1][2]]
    return Prices((*(a for a, _, _ in kept), *(b for _, b, _ in steps[-1:])), tuple(price for _, _, price in kept))
