"""Tables of gaps from the rows of learned policies: means with intervals, percentiles, times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from .cells import table
from .learned_rows import LearnedRow

_RESAMPLES = 2000


def of(rows: Sequence[LearnedRow], **wanted: object) -> list[LearnedRow]:
    """Return the rows with these values, e.g. ``of(rows, set="small", proved=True)``."""
    return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95% interval of the mean, by the bootstrap's percentiles: gaps are not spread evenly."""
    given = np.asarray(values, dtype=float)
    rng = np.random.default_rng(seed)
    means = given[rng.integers(0, len(given), (_RESAMPLES, len(given)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def with_best(rows: Sequence[LearnedRow], heuristics: Collection[str]) -> list[LearnedRow]:
    """Return the rows, and those of the best of some heuristics for each instance, in the time of all of them."""
    by: dict[object, list[LearnedRow]] = defaultdict(list)
    for row in rows:
        if row.method in heuristics:
            by[row.instance].append(row)
    best = [
        replace(
            min(found, key=lambda row: row.gap),
            method="best heuristic",
            milliseconds=sum(row.milliseconds for row in found),
        )
        for found in by.values()
    ]
    return [*rows, *best]


def gaps(rows: Sequence[LearnedRow], methods: Sequence[str], names: dict[str, str] | None = None) -> str:
    """Return a line a method: instances, mean gap and its 95% interval, p95, share at the reference, milliseconds.

    Only instances that all of the methods have been judged on count. A gap is infinite where there is no plan; such
    instances are counted beside the mean and are not in it.

    Args:
        rows: of one set, or several.
        methods: in the order of the lines.
        names: of methods to show, by what they are called in the rows.
    """
    by: dict[str, dict[object, LearnedRow]] = defaultdict(dict)
    for row in rows:
        by[row.method][row.instance] = row
    there = [m for m in methods if by[m]]
    common = set.intersection(*(set(by[m]) for m in there)) if there else set()
    lines = []
    for method in there:
        found = [by[method][x] for x in sorted(common, key=str)]
        gap = np.array([row.gap for row in found])
        some = gap[np.isfinite(gap)]
        if not len(some):
            continue
        low, high = interval(some.tolist())
        time = np.array([row.milliseconds for row in found])
        lost = f" ({len(gap) - len(some)} without a plan)" if len(some) < len(gap) else ""
        name = (names or {}).get(method, method)
        lines.append((
            name, f"{len(gap)}{lost}", f"{some.mean():.2%}", f"{low:.2%} to {high:.2%}",
            f"{np.percentile(some, 95):.1%}", f"{(some <= 1e-6).mean():.0%}", f"{np.median(time):.3g}",
            f"{time.mean():.3g}",
        ))  # fmt: skip
    head = (
        "method", "instances", "mean gap", "95% interval", "p95", "at the reference", "median ms", "mean ms",
    )  # fmt: skip
    return table(head, lines)
