"""Certificates of schedules: prices of GPU-seconds over time, and a search over starts by such prices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import inf

from gangplan.instances.certificates.grid import TimeGrid
from gangplan.instances.certificates.starts import StartsCertificate

from ..run import Run
from ..schedule.prepare import PreparedJobs, ShiftedRun, prepare
from ..schedule.starts import prices
from .bounds import BELOW, LONGEST, rounded

_FIRST, _MORE, _MOST = 20_000, 8, 20_000_000
"""Steps of the first search, how many times as many the next one has, and what the checker allows."""

Priced = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Times, and the price of a GPU-second between each two."""


def candidates(run: Run, left: Callable[[], float]) -> Iterator[StartsCertificate]:
    """Yield certificates of a schedule problem: prices that cost little to find, the best ones, then a search."""
    p = prepare(run.problem)
    zero, value = Fraction(run.zero), run.objective
    above = Fraction(_ceiling(p)) if value is None else Fraction(value) - zero
    threshold = zero + above * (1 - BELOW)
    yield StartsCertificate(threshold, (), (), 0)
    options = _areas(TimeGrid(run.problem, threshold)) if p.makespan else _priced(run, p, left)
    _, best = max((StartsCertificate(threshold, *x, 0).bound(run.problem), x) for x in [((), ()), *options])
    yield StartsCertificate(threshold, *best, 0)
    steps, used, room = _FIRST, 0.0, min(left(), LONGEST)
    while value and used < room:
        begun = time.perf_counter()
        yield StartsCertificate(threshold, *best, steps)  # whoever asks for the next has checked it
        used, room = max(time.perf_counter() - begun, 1e-3), min(left(), LONGEST)
        steps = min(int(steps * min(_MORE, room / used)), _MOST)
        used *= 2 if steps < _MOST else inf


def _ceiling(p: PreparedJobs) -> float:
    """Return more than any plan costs from zero on whose jobs wait for nothing."""
    return float(p.horizon * (1 + p.slope.sum()) + p.price[p.price < inf].sum()) + 1.0


def _areas(grid: TimeGrid) -> Iterator[Priced]:
    """Yield prices of a makespan: all work after a release takes all GPUs so long."""
    end = grid.threshold - grid.zero
    for first in sorted({run.first for task in grid.tasks for run in task.options}):
        if first * grid.tick < end:
            yield (first * grid.tick, end), (Fraction(1, grid.gpus),)


def _priced(run: Run, p: PreparedJobs, left: Callable[[], float]) -> Iterator[Priced]:
    """Yield the prices of the volume algorithm."""
    inner = Run(run.problem, time_limit=inf, seed=run.seed)
    inner.callbacks = (lambda _: left() <= 0,)
    if run.plan is not None:
        inner.offer(run.plan, "plan")
    inner.stop_reason = None
    found = prices(ShiftedRun(inner, p), p)
    if found is not None:
        zero, step = Fraction(found.grid.zero), Fraction(found.grid.step)
        yield merged([zero + k * step for k in range(len(found.grid.pi) + 1)], rounded(found.grid.pi))


def merged(times: list[Fraction], prices: tuple[Fraction, ...]) -> Priced:
    """Return prices over time without intervals that cost the same as the one before, or nothing at the end."""
    steps = [(a, b, price) for (a, b), price in zip(pairwise(times), prices, strict=True)]
    while steps and not steps[-1][2]:
        steps.pop()
    kept = [x for k, x in enumerate(steps) if not k or x[2] != steps[k - 1][2]]
    return (*(a for a, _, _ in kept), *(b for _, b, _ in steps[-1:])), tuple(price for _, _, price in kept)
