"""Certificates of schedules: prices of GPU-seconds over time, and a search over starts by such prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf

from gangplan.instances.certificates.document import Proved
from gangplan.instances.certificates.exact import BELOW
from gangplan.instances.certificates.grid import TimeGrid
from gangplan.instances.certificates.starts import StartsCertificate

from ..run import Run
from ..schedule.prepare import PreparedJobs, ShiftedRun, prepare
from ..schedule.starts import Priced, ceiling, merged, prices, refuted


def candidates(run: Run, left: Callable[[], float]) -> Iterator[StartsCertificate | Proved]:
    """Yield certificates of a schedule problem: prices that cost little to find, the best ones, then a search."""
    p = prepare(run.problem)
    zero, value = Fraction(run.zero), run.objective
    threshold = zero + (ceiling(p) if value is None else Fraction(value) - zero) * (1 - BELOW)
    yield StartsCertificate(threshold, (), (), 0)
    options = _areas(TimeGrid(run.problem, threshold)) if p.makespan else _priced(run, p, left)
    _, best = max((StartsCertificate(threshold, *x, 0).bound(run.problem), x) for x in [((), ()), *options])
    yield StartsCertificate(threshold, *best, 0)
    if value:
        yield from refuted(run.problem, best, threshold, threshold, left)


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
        yield merged(found)
