"""Policies over seeds: means with intervals, and differences of runs that saw the same jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sin, sqrt, tan

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice

from .summary import Metrics

FIGURES = tuple(field.name for field in dataclasses.fields(Metrics))
LEVEL = 0.95
"""Probability that an interval holds the mean, if the seeds' figures are normal."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of one policy.

    Attributes:
        mean: over the seeds.
        margin: half the width of the 95% interval of the mean, by Student's t; None of one seed.
        difference: of the mean from that of the first policy; None for that one.
        difference_margin: half the width of its 95% interval, of the differences seed by seed; None where `margin` or
            `difference` is.
    """

    policy: str
    figure: str
    seeds: int
    mean: float
    margin: float | None
    difference: float | None
    difference_margin: float | None


def compare(found: Mapping[str, Sequence[Metrics]], figures: Sequence[str] = FIGURES) -> tuple[ComparedFigure, ...]:
    """Return a row for each policy and figure, policy by policy; figures that some run does not have are left out.

    `found`: of each policy its figures, in the same order of seeds, each seed the same jobs for all.
    """
    counts = {name: len(runs) for name, runs in found.items()}
    if not counts or 0 in counts.values():
        raise InstanceError("found", "has a policy without a run" if counts else "has no policy")
    if len(set(counts.values())) > 1:
        words = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InstanceError("found", f"has other numbers of seeds: {words}")
    for figure in figures:
        require_choice(figure, "figures", FIGURES)
    everyone = [run for runs in found.values() for run in runs]
    known = [figure for figure in figures if all(getattr(run, figure) is not None for run in everyone)]
    base = next(iter(found))
    rows = []
    for name, runs in found.items():
        for figure in known:
            values, first = (np.array([getattr(run, figure) for run in some], float) for some in (runs, found[base]))
            mean, margin = interval(values)
            apart = (None, None) if name == base else interval(values - first)
            rows.append(ComparedFigure(name, figure, len(runs), mean, margin, *apart))
    return tuple(rows)


def interval(values: np.ndarray) -> tuple[float, float | None]:
    """Return the mean of `values`, float64 (n,), and half the width of its 95% interval, None if there is one value."""
    margin = half_width(values)
    return float(values.mean()), None if margin is None else float(margin)


def half_width(values: np.ndarray) -> np.ndarray | None:
    """Return half the width of the 95% intervals of means over the first axis, by Student's t; None of one value."""
    n = len(values)
    return np.asarray(student_quantile(n - 1) * values.std(axis=0, ddof=1) / sqrt(n)) if n > 1 else None


def student_within(t: float, freedom: int) -> float:
    """Return the probability that Student's t is between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    return _within(atan(t / sqrt(freedom)), freedom)


@cache
def student_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the t such that Student's is between -t and t with probability `level`."""
    low, high = 0.0, pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    odd = freedom % 2
    total = term = cos(angle) if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * cos(angle) ** 2
        total += term
    if not odd:
        return sin(angle) * total
    return 2 / pi * (angle + (sin(angle) * total if freedom > 1 else 0.0))
