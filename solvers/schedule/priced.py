"""Prices of GPU-seconds for a bound, then starts in their order under these prices: most proofs and good schedules."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ..result import OPTIMAL_GAP
from ..run import Run
from .decode import decode
from .grain import resolution, rounded_up
from .local_search import list_of
from .lp_bound import Master, Prices
from .prepare import Ints, Prepared
from .sequence import Sequence
from .sizes import horizon

_COARSE, _FINE = 50, 200
"""Intervals of the grid: over all, then up to where GPUs cost something."""
_WIDTHS = (10, 100, 1_000, 10_000, 100_000, 300_000)
"""Beginnings kept side by side, one search after the other."""
_LABEL_BYTES = 2e9


def prices(run: Run, p: Prepared) -> Prices | None:
    """Return prices whose bound is that of the time-indexed LP, or near; raise the bound as they get better."""
    end = _end(run, p)
    best: Prices | None = None
    for intervals in (_COARSE, _FINE if p.n <= 100 else _FINE // 2):
        if run.stopped:
            break
        master = Master(run, p, intervals, end)
        master.solve()
        if best is None or master.best.bound > best.bound:
            best = master.best
        run.raise_bound(rounded_up(p, best.bound - TOLERANCE * abs(best.bound)), "time-indexed LP")
        priced = np.flatnonzero(master.best.pi > 1e-9 * master.best.pi.max(initial=0.0))
        if not len(priced):
            break
        end = best.zero + master.step * float(min(intervals, priced[-1] + 2))
    return best


def lp(run: Run, p: Prepared) -> None:
    """Raise the bound to that of the time-indexed LP, and offer the schedule in the order of its mean starts."""
    found = prices(run, p)
    if found is not None and not run.stopped:
        _offer_rounded(run, p, found)


def starts(run: Run, p: Prepared) -> None:
    """Price GPU-seconds, then search over starts, wider and wider; exact where GPUs are only counted."""
    with run.phase("prices"):
        found = prices(run, p)
    if found is None or run.stopped:
        return
    _offer_rounded(run, p, found)
    if not p.slope.any():
        return  # every order costs the same: there is nothing to search by
    for width in _WIDTHS:
        if run.stopped or width * max(1, min(p.n, p.cluster.total)) * 48 > _LABEL_BYTES:
            return
        known = run.objective if run.objective is not None else _ceiling(p)
        search = Sequence(run, p, found)
        missed = search.search(width, known, resolution(p) * (1 - 1e-6) or OPTIMAL_GAP / 2 * abs(known))
        if run.stopped:
            return
        best = min(known, search.value)
        if search.best is not None and search.value < known:
            _offer(run, p, *search.best)
        elif missed == np.inf and run.plan is None:
            run.prove_infeasible()
            return
        run.raise_bound(min(best, rounded_up(p, missed - TOLERANCE * abs(missed))), "starts")
        if missed == np.inf:
            return


def _ceiling(p: Prepared) -> float:
    """Return more than any schedule without needless delay costs."""
    last = p.release.max() + p.seconds.sum() + 1.0
    return p.constant + 1.0 + float(p.slope.sum() * last + p.price[np.isfinite(p.price)].sum())


def _end(run: Run, p: Prepared) -> float:
    """Return when the best schedule known ends, or when all jobs have run one after the other."""
    if run.plan is not None:
        chosen = zip(run.problem.jobs, run.plan.degree.tolist(), run.plan.start.tolist(), strict=True)
        return float(max([p.release.max(), *(s + job.durations[d] for job, d, s in chosen if d >= 0)]))
    return horizon(p)


def _offer(run: Run, p: Prepared, option: Ints, start: FloatArray) -> None:
    """Offer a schedule of counted GPUs, put on nodes or blocks in the order of its starts."""
    drawn = p.plan(option, start, np.zeros((3, 0), dtype=int))
    value, used, begin, rows = decode(p, *list_of(p, drawn.degree, drawn.start))
    if np.isfinite(value) and not run.stopped:
        run.offer(p.plan(used, begin, rows), "starts")


def _offer_rounded(run: Run, p: Prepared, found: Prices) -> None:
    """Offer the schedule that starts jobs in the order of their mean starts in the LP, at their favourite degrees."""
    if not len(found.option):
        return
    owner = p.owner[found.option]
    weight = np.bincount(owner, weights=found.share, minlength=p.n)
    mean = np.bincount(owner, weights=found.share * found.start, minlength=p.n) / np.maximum(weight, 1e-9)
    share = np.bincount(found.option, weights=found.share, minlength=len(p.gpus))
    wish = np.where(weight >= 0.5, p.first_least(-share.astype(float), -1), -1)
    late = np.where(weight > 0, mean, np.inf)
    for choice in (wish, np.where(np.isfinite(p.price), wish, np.where(wish < 0, -2, wish)), np.full(p.n, -2)):
        value, option, start, rows = decode(p, np.argsort(late, kind="stable"), choice)
        if np.isfinite(value) and not run.stopped:
            run.offer(p.plan(option, start, rows), "rounded LP")
