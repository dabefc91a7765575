"""Certificates of schedules: prices of GPU-seconds over time, and a search over starts by such prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import inf

from gangplan.instances.certificates.document import Certificate
from gangplan.instances.certificates.grid import Grid
from gangplan.instances.certificates.starts import Starts
from gangplan.instances.certificates.times import Prices

from ..run import Run
from ..schedule.prepare import ShiftedRun, prepare
from ..schedule.starts import prices
from .bounds import rounded

_BELOW = Fraction(1, 2 * 10**6)
"""How far the threshold of a search is below the plan, as a share of what can be gained."""
_PACE = 100_000
"""Steps that a search over starts takes in a second."""
_LONGEST = 60.0
"""Seconds that it may take at most, and so whoever checks the certificate."""
_WIDEST = 64
"""GPUs beyond which no search is begun: each beginning has a time for each."""


def candidates(run: Run, left: Callable[[], float]) -> Iterator[Certificate]:
    """Yield certificates of a schedule problem; what costs little comes first."""
    known = Prices((), ())
    if run.problem.goal != "makespan":
        for known in _priced(run, left):
            yield known
    if not run.objective:
        return
    zero, value = Fraction(run.zero), Fraction(run.objective)
    threshold = zero + (value - zero) * (1 - _BELOW)
    grid = Grid(run.problem, threshold)
    times = tuple(x - grid.zero for x in known.times), known.prices
    options = [times] if run.problem.goal != "makespan" else [((), ()), *_areas(grid)]
    roots = [(Starts(threshold, *x, 0).bound(run.problem), x) for x in options]
    _, best = max(roots)
    yield Starts(threshold, *best, 0)
    yield Starts(threshold, *best, int(_PACE * min(left(), _LONGEST)))


def _areas(grid: Grid) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """Yield prices of a makespan: all work after a release takes all GPUs so long."""
    end = grid.threshold - grid.zero
    for first in sorted({run.first for task in grid.tasks for run in task.options}):
        if first * grid.tick < end:
            yield (first * grid.tick, end), (Fraction(1, grid.gpus),)


def _priced(run: Run, left: Callable[[], float]) -> Iterator[Prices]:
    """Yield no prices at all, which has each job alone, then those of the volume algorithm."""
    yield Prices((), ())
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
