"""Prices of GPU-seconds for a bound and good schedules, then a search under these prices: most proofs.

The search is that of certificates, so that what it proves is certified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from math import inf, nextafter

import numpy as np

from gangplan.instances.certificates.document import Proved, in_floats
from gangplan.instances.certificates.exact import BELOW, LONGEST, rounded
from gangplan.instances.certificates.starts import StartsCertificate
from gangplan.instances.errors import InstanceError
from gangplan.instances.schedule import ScheduleProblem
from gangplan.instances.verify import TOLERANCE

from ..run import Run
from .classic import BY_PRICES
from .decode import Decoder
from .grain import rounded_up, suits_starts
from .prepare import CHEAPEST, EARLIEST, LEFT_OUT, Ints, PreparedJobs, ShiftedRun
from .prices import FINER, LEVELS, OFTEN, BestPrices, Levels, ascend

_FINER = 60
"""Maximum number of jobs for whose search prices are on a finer grid."""
_FIRST, _MORE, _LEAST, _MOST = 2_000, 8, 2, 20_000_000
"""Steps of the first search, how many times as many the next one has at most and at least, and what the checker
allows."""
_WIDTHS, _PACE = (10, 30, 100), 100_000
"""Beginnings kept side by side, for schedules before proofs; steps a second."""
_PARTS = 64
"""Of what is open, the share to which the greatest threshold that can be refuted is looked for."""
Priced = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Times, and the price of a GPU-second between each two."""


def prices(
    run: Run,
    p: PreparedJobs,
    levels: Levels = LEVELS,
    often: int = OFTEN,
    watch: Callable[[BestPrices], None] = lambda found: None,
) -> BestPrices | None:
    """Return prices whose bound is near that of the time-indexed LP; raise the bound and offer lists on the way.

    That is every `often` steps; `watch` is told of the prices then.
    """
    decoder = Decoder(p)

    def tell(found: BestPrices) -> None:
        run.raise_bound(rounded_up(p, found.bound - TOLERANCE * abs(found.bound)), "time-indexed LP")
        for order, wish in mean_lists(p, found):
            decoder.offer(run, BY_PRICES, order, wish)
        watch(found)

    found = ascend(run, p, _end(run, p), tell, levels, often)
    if found is not None and not run.stopped:
        tell(found)
    return found


def lp(run: Run, p: PreparedJobs) -> None:
    """Raise the bound to that of the time-indexed LP, and offer schedules in the order of its mean starts."""
    prices(run, p)


def starts(run: Run, p: PreparedJobs) -> None:
    """Price GPU-seconds, then search under these prices: exact where GPUs are only counted."""
    shifted = ShiftedRun(run, p)
    with run.phase("prices"):
        found = prices(shifted, p, FINER if p.n <= _FINER else LEVELS)
    # where every order costs the same there is nothing to search by
    if found is None or run.stopped or not suits_starts(p) or not p.slope.any():
        return
    priced, decoder, zero = merged(found), Decoder(p), Fraction(run.zero)

    def high() -> Fraction:
        """Return what is to be refuted."""
        return zero + (ceiling(p) if run.objective is None else (Fraction(run.objective) - zero) * (1 - BELOW))

    def better(runs: list[tuple[int, int]]) -> None:
        jobs = [j for j, _ in runs]
        option, rank = np.where(p.slope == 0, CHEAPEST, LEFT_OUT), np.full(p.n, p.n)
        option[jobs] = [next(o for o in p.options(j) if p.gpus[o] == gpus) for j, gpus in runs]
        rank[jobs] = np.arange(len(runs))
        decoder.offer(shifted, "starts", np.argsort(rank, kind="stable"), option)

    def prove(bound: Fraction | float) -> None:
        run.raise_bound(nextafter(float(bound), 0.0), "starts")

    for width in _WIDTHS:
        with suppress(InstanceError):
            certificate = StartsCertificate(high(), *priced, int(_PACE * run.remaining()))
            value, runs = certificate.search(run.problem, width)
            if runs is not None:
                better(runs)
            if run.plan is not None:
                prove(in_floats(value))
        if run.stopped:
            return
    for proof in refuted(run.problem, priced, Fraction(run.bound or 0), high(), run.remaining, better):
        if run.plan is None and proof.bound >= high() * (1 - BELOW):
            run.prove_infeasible("starts")
        elif proof.bound < inf:
            run.prove(proof)
            prove(proof.bound)


def refuted(
    problem: ScheduleProblem,
    priced: Priced,
    low: Fraction,
    high: Fraction,
    left: Callable[[], float],
    better: Callable[[list[tuple[int, int]]], object] = len,
) -> Iterator[Proved]:
    """Search for schedules below a threshold with more and more steps; yield what is proved.

    Once no more steps are affordable, thresholds between one that is refuted and `high` are searched.

    Args:
        problem: of schedules.
        priced: times and prices, see `StartsCertificate`.
        low: a bound that is known; `high` where others are of no use.
        high: what is to be refuted.
        left: returns the seconds that are left.
        better: is given the best schedule if one is below a threshold, (job, GPUs) in the order of starts.
    """
    steps, threshold, top, near = _FIRST, high, high, (high - low) / _PARTS
    while (room := min(left(), LONGEST)) > 0:
        begun, certificate, over = time.perf_counter(), StartsCertificate(threshold, *priced, steps), False
        try:
            value, runs = certificate.search(problem)
        except InstanceError:
            top, over = threshold, True
        else:
            if runs is not None:
                better(runs)
                threshold = top = high = Fraction(value)
                continue
            yield Proved(certificate, in_floats(value))
            low = threshold
        used = max(time.perf_counter() - begun, 1e-3)
        more = min(_MORE, (room - used) / used, _MOST / steps)
        if over and more >= _LEAST:
            steps, threshold, top = int(steps * more), high, high
        elif top - low <= near:
            return
        else:
            threshold = (low + top) / 2


def merged(found: BestPrices) -> Priced:
    """Return rational prices without intervals that cost the same as the one before, or nothing at the end."""
    zero, step = Fraction(found.grid.zero), Fraction(found.grid.step)
    steps = [(zero + k * step, zero + (k + 1) * step, price) for k, price in enumerate(rounded(found.grid.pi))]
    while steps and not steps[-1][2]:
        steps.pop()
    kept = [x for k, x in enumerate(steps) if not k or x[2] != steps[k - 1][2]]
    return (*(a for a, _, _ in kept), *(b for _, b, _ in steps[-1:])), tuple(price for _, _, price in kept)


def ceiling(p: PreparedJobs) -> Fraction:
    """Return more than any plan costs from zero on whose jobs wait for nothing."""
    return Fraction(float(p.horizon * (1 + p.slope.sum()) + p.price[p.price < inf].sum()) + 1.0)


def _end(run: Run, p: PreparedJobs) -> float:
    if run.plan is not None:
        chosen = zip(run.problem.jobs, run.plan.degree.tolist(), run.plan.start.tolist(), strict=True)
        return float(max([p.release.max(), *(s + job.durations[d] for job, d, s in chosen if d >= 0)]))
    return p.horizon


def mean_lists(p: PreparedJobs, found: BestPrices) -> list[tuple[Ints, Ints]]:
    """Return lists in the order of the mean starts under prices: at the favourite degrees, or whoever ends first."""
    weight = np.add.reduceat(np.append(found.share, 0.0), p.first[:-1]) * (np.diff(p.first) > 0)
    wish = np.where(weight >= 0.5, p.first_least(-found.share, LEFT_OUT), LEFT_OUT)
    order = np.argsort(np.where(weight > 0, found.mean, np.inf), kind="stable")
    lists = [(order, np.where(np.isfinite(p.price) | (wish >= 0), wish, CHEAPEST))]
    return [*lists, (order, np.full(p.n, EARLIEST))] if np.isfinite(p.price).any() or suits_starts(p) else lists
