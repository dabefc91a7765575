"""The tables of docs/learned-schedule.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .cells import table
from .learned_schedule import LearnedRow, problem_of, read
from .ledger import ROOT
from .report import renew

_RESAMPLES = 2000
METHODS = (
    *("learned", "learned (16)", "lists", "one list", "base", "local search", "MLP", "MLP (16)", "trees"),
    *("random", "random (16)", "exact"),
)
ABLATIONS = ("learned", "imitation only", "short", "one label", "MLP", "RL only")
SIZES = (20, 200, 2000)
_RANGES = ((1, 10), (11, 20), (21, 40), (41, 60))
"""Of jobs, in the table of times."""
NAMES = {"lists": "lists (best of 18)", "one list": "one list (smith, earliest finish)"}


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


def gaps(rows: Sequence[LearnedRow], methods: Sequence[str], names: dict[str, str] | None = None) -> str:
    """Return a line a method: instances, mean gap and its 95% interval, share at the reference, milliseconds.

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
            f"{(some <= 1e-6).mean():.0%}", f"{time.mean():.3g}",
        ))  # fmt: skip
    return table(("method", "instances", "mean gap", "95% interval", "optimal", "mean ms"), lines)


def _proved(name: str) -> Callable[[Sequence[LearnedRow]], str]:
    return lambda rows: gaps(of(rows, set=name, proved=True), METHODS, NAMES)


def _transfer(rows: Sequence[LearnedRow]) -> str:
    lines = []
    for method in ("learned", "learned (16)", "lists", "base", "local search"):
        cells = []
        for size in SIZES:
            found = [x.gap for x in of(rows, set="sizes", size=size, method=method) if np.isfinite(x.gap)]
            cells.append(f"{np.mean(found):.2%}" if found else "")
        lines.append((NAMES.get(method, method), *cells))
    return table(("gap to the bound", *(f"{size:,} jobs" for size in SIZES)), lines)


def pairs(rows: Sequence[LearnedRow], a: str, b: str, **wanted: object) -> list[float]:
    """Return by how much the goal of method `a` is above that of `b`, as a share of it, on each instance of both."""
    found = of(rows, **wanted)
    mine = {x.instance: x.objective for x in found if x.method == a and x.objective}
    theirs = {x.instance: x.objective for x in found if x.method == b and x.objective}
    return [mine[key] / theirs[key] - 1 for key in mine if key in theirs]


def _against(rows: Sequence[LearnedRow]) -> str:
    lines = []
    for a, b in (
        *(("learned", "lists"), ("learned (16)", "local search"), ("learned", "imitation only")),
        ("learned (16)", "imitation only (16)"),
    ):
        for size in SIZES:
            found = pairs(rows, a, b, set="sizes", size=size)
            if found:
                low, high = interval(found)
                lines.append((a, NAMES.get(b, b), f"{size:,}", f"{len(found)}", f"{np.mean(found):+.2%}",
                              f"{low:+.2%} to {high:+.2%}"))  # fmt: skip
    return table(("method", "against", "jobs", "instances", "goal, relative", "95% interval"), lines)


def _speed(rows: Sequence[LearnedRow]) -> str:
    """Return a line a range of sizes: times of the exact solver, which count in full if it proved nothing, and ours."""
    rows = [*of(rows, set="small"), *of(rows, set="time")]
    took = {(x.instance, x.method): x for x in rows}
    size = {x.instance: _jobs(x) for x in rows if x.method == "exact" and (x.instance, "learned") in took}
    lines = []
    for low, high in (*_RANGES, (0, max(size.values(), default=0))):
        mine = [at for at, n in size.items() if low <= n <= high]
        if not mine:
            continue
        methods = "exact", "learned", "learned (16)"
        proof, greedy, many = (np.array([took[at, m].milliseconds for at in mine]) for m in methods)
        lines.append((
            f"{low} to {high}" if low else "all", str(len(mine)),
            f"{np.mean([took[at, 'exact'].proved for at in mine]):.0%}", f"{np.median(proof):,.0f}",
            f"{proof.mean():,.0f}", f"{greedy.mean():.1f}", _share(proof, greedy), f"{many.mean():.1f}",
            _share(proof, many), f"{(greedy <= 0.01 * proof).mean():.0%}",
        ))  # fmt: skip
    head = (
        "jobs", "instances", "proved", "exact, median ms", "mean ms", "learned, mean ms", "ratio of means",
        "learned (16), mean ms", "ratio of means", "learned within 1/100",
    )  # fmt: skip
    return table(head, lines)


def _share(exact: np.ndarray, learned: np.ndarray) -> str:
    return f"1/{exact.mean() / learned.mean():.0f}"


def _jobs(row: LearnedRow) -> int:
    return len(problem_of(row.family, row.seed, row.size).jobs)


TABLES: dict[str, Callable[[Sequence[LearnedRow]], str]] = {
    "small": _proved("small"),
    "unseen_family": _proved("unseen family"),
    "larger": _proved("time"),
    "speed": _speed,
    "transfer": _transfer,
    "against": _against,
    "ablations": lambda rows: gaps(of(rows, set="small", proved=True), ABLATIONS),
    "ablations_200": lambda rows: gaps(of(rows, set="sizes", size=200), ABLATIONS),
}


def write_page(check: bool = False) -> int:
    """Renew docs/learned-schedule.md from the rows, see `renew`."""
    rows = read()
    tables = {name: partial(make, rows) for name, make in TABLES.items()}
    return renew(ROOT / "docs" / "learned-schedule.md", tables, "learned schedule --page", check=check)
