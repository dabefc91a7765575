"""A job's work as a distribution, what is left of it at an age, and the order that this says (Gittins).

The distribution is a sample of `POINTS` amounts of GPU seconds, ascending, each as probable as the others: the means of
so many slices of equal probability, so that the mean is that of the whole. Beyond the last a job is taken to need twice
as much, and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from gangplan.instances.arrays import FloatArray

POINTS = 24
"""Amounts of a sample: a snapshot has as many for each job, and a running job is looked at anew so often."""

Work = tuple[float, ...]
"""GPU seconds, ascending, each as probable as the others; none of a job whose seconds are believed."""


def quantile(work: Sequence[float], share: float) -> float:
    """Return the GPU seconds within which a job ends with so much probability, interpolated."""
    middle = (np.arange(len(work)) + 0.5) / len(work)
    return float(np.interp(share, middle, work))


def passed(work: Work, age: float) -> tuple[float, FloatArray]:
    """Return the last amount that a job has passed at an age, and the amounts that it may still need in all."""
    at = bisect_right(work, age)
    if at < len(work):
        return work[at - 1] if at else 0.0, np.array(work[at:])
    last = max(work[-1], 1.0)
    while 2 * last <= age:
        last *= 2
    return last, np.array([2 * last])


def expected(work: Work, age: float) -> float:
    """Return the GPU seconds that a job of an age is expected to need in all."""
    return float(passed(work, age)[1].mean())


def index(work: Work, age: float) -> float:
    """Return the Gittins index of a job of an age in GPU seconds, the least goes first.

    It is the least, over amounts d, of the work that the job is expected to take before it ends or has had d, over the
    probability that it ends by then (Gittins, Journal of the Royal Statistical Society B 1979; Scully, Harchol-Balter
    and Scheller-Wolf, SIGMETRICS 2018). If the amount is known it is what is left. The age is that of the last amount
    passed, so that a job does not seem to be about to end just before the next one.
    """
    base, rest = passed(work, age)
    more, n = rest - base, len(rest)
    ended = np.arange(1, n + 1)
    return float(((np.cumsum(more) + (n - ended) * more) / ended).min())
