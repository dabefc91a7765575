"""Make the certificate of a bound: the simple arguments first, then what takes time, each checked as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.certificates.around import AroundCertificate
from gangplan.instances.certificates.calls import CallsCertificate
from gangplan.instances.certificates.document import Certificate, Proved
from gangplan.instances.certificates.grouped import GroupedCertificate
from gangplan.instances.certificates.ideals import IdealsCertificate
from gangplan.instances.certificates.orders import EACH, OrdersCertificate
from gangplan.instances.certificates.rooms import RoomsCertificate
from gangplan.instances.certificates.rows import model_of
from gangplan.instances.certificates.stages import RecurrenceCertificate
from gangplan.instances.certificates.steps import TogetherCertificate, series_of

from ..run import Run
from .bounds import BELOW, LONGEST, longest, simple

_SPLITS = 20_000
"""Nodes of a tree: its document has some megabytes then."""
_PACE = 120_000
"""Steps that a search over ideals takes in a second."""
_NUMBERS = 10**8
"""Numbers that the recurrence of stages looks at in a second."""
_ARCS = 10**6
"""Arcs of minimum cuts that are looked at in a second."""
_INPUTS = 10**5
"""Inputs of ops that are looked at in a second."""
_PATHS, _CLOSE = 1_500_000, Fraction(1, 10**8)
"""Arcs of paths that are looked at in a second; how far thresholds of times are below the plan, as a share."""
_PAIRS = 400_000
"""Edges and pairs of groups that are looked at in a second."""
_BEGINNINGS = 15_000
"""Beginnings of plans of pipelines that are looked at in a second."""
_STAGES = 40_000
"""Degrees and stages of layouts that are looked at in a second."""
_FOREVER = Fraction(10**30)
"""Seconds that no step takes."""
_LOADED = 0.1
"""Seconds that it takes to load HiGHS."""
_SHARE = 0.4
"""What it may take of the time that is left: a tree comes after it."""
_COLUMNS = 4_000
"""Ops times devices beyond which a tree is not begun: its first linear programme would take most of a minute."""


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
    for made in _candidates(run, left):
        try:
            found = made if isinstance(made, Proved) else Proved(made, verify_bound(run.problem, made))
        except InstanceError:
            continue  # a search that takes longer than it may
        if run.objective is not None and found.bound > Fraction(run.objective):
            raise AssertionError(f"{found.certificate.argument} proves {found.bound}, above a plan of {run.objective}")
        if found.bound > (best.bound if best else 0):
            best = found
            run.prove(found)
        if left() <= 0 or (best and certifies(best.bound, run.objective, run.zero)):
            break
    return best


def _parts(run: Run) -> tuple[Fraction, ...]:
    """Return how long the plan of a step is in each part of its graph's series, a little less."""
    problem, plan = run.problem, run.plan
    end = plan.start + problem.time()[problem.cluster.type_of[plan.device], np.arange(problem.graph.n_ops)]
    ends = [[(end[[*begin]].max(initial=0.0), end[[*ops]].max()) for begin, ops in part] for part in series_of(problem)]
    return tuple(sum((Fraction(b) - Fraction(a) for a, b in x), Fraction(0)) * (1 - _CLOSE) for x in ends)


def _candidates(run: Run, left: Callable[[], float]) -> Iterator[Certificate | Proved]:
    try:
        yield from {"layout": _layouts, "pipeline": _orders}.get(run.problem.objective, _made)(run, left)
    except InstanceError:
        return  # what the checker refuses: rows with too many numbers, times that clocks do not tell apart


def _layouts(run: Run, left: Callable[[], float]) -> Iterator[Certificate | Proved]:
    from gangplan.instances.certificates.layouts import FamiliesCertificate

    threshold = Fraction(run.objective) * (1 - _CLOSE) if run.objective else _FOREVER
    yield FamiliesCertificate(threshold, int(_STAGES * min(left(), LONGEST)))


def _step(run: Run, left: Callable[[], float]) -> Iterator[Certificate]:
    threshold, others = Fraction(run.objective or 0) * (1 - _CLOSE), simple(run.problem)
    yield next(others)  # a path
    if threshold and run.problem.is_shop():
        yield TogetherCertificate(threshold, int(_PATHS * min(left() * _SHARE, LONGEST)))
        if left() < _LOADED:  # others show less then
            return
    yield from others
    yield RoomsCertificate(int(_INPUTS * min(left(), LONGEST)))
    parts = () if run.plan is None else _parts(run)
    if threshold and len(parts) > 1:
        yield TogetherCertificate(sum(parts, Fraction(0)), int(_PATHS * min(left() * _SHARE, LONGEST)), parts)
    if threshold:
        yield TogetherCertificate(threshold, int(_PATHS * min(left(), LONGEST)))


def _orders(run: Run, left: Callable[[], float]) -> Iterator[Certificate | Proved]:
    yield from simple(run.problem)
    if run.problem.barrier and run.objective:
        threshold = Fraction(run.objective) * (1 - _CLOSE)
        yield OrdersCertificate(threshold, int(_BEGINNINGS * EACH * min(left(), LONGEST)))


def _made(run: Run, left: Callable[[], float]) -> Iterator[Certificate | Proved]:
    problem = run.problem
    if problem.objective == "step":
        yield from _step(run, left)
        return
    yield from simple(problem)
    if problem.objective == "schedule":
        from .schedules import candidates

        yield from candidates(run, left)
    if problem.objective == "placement":
        from .placements import candidates as placements

        yield from placements(run, left)
    if problem.objective == "latency":
        seconds = problem.time()[problem.cluster.counts() > 0].min(axis=0)
        for weight in (seconds + problem.transfer(), np.ones(len(seconds))):
            yield CallsCertificate(longest(problem, weight), int(_ARCS * min(left(), LONGEST)))
        if run.objective and not problem.hosts().any():
            threshold = Fraction(run.objective) * (1 - _CLOSE)
            yield GroupedCertificate(threshold, int(_PAIRS * min(left(), LONGEST)))
    if problem.objective not in ("throughput", "stages") or not run.objective:
        return
    threshold = Fraction(run.objective) * (1 - BELOW)
    if problem.objective == "stages":
        yield RecurrenceCertificate(threshold, int(_NUMBERS * min(left(), LONGEST)))
        return
    yield AroundCertificate(threshold, int(_ARCS * min(left() * _SHARE, LONGEST)))
    if problem.variant == "contiguous" and np.count_nonzero(problem.cluster.counts()) == 1:
        yield IdealsCertificate(threshold, int(_PACE * min(left() * _SHARE, LONGEST)))
    if problem.graph.n_ops * problem.cluster.n_devices <= _COLUMNS:
        from .branch import BranchSearch

        yield BranchSearch(model_of(problem, threshold), threshold, left, _SPLITS).solve()
