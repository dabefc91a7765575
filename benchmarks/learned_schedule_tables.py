"""The tables of docs/learned-schedule.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .cells import table
from .learned_rows import LearnedRow
from .learned_speed import speed
from .learned_tables import gaps, interval, of

METHODS = (
    *("learned", "learned (16)", "lists", "one list", "base", "local search", "MLP", "MLP (16)", "trees"),
    *("random", "random (16)", "exact"),
)
ABLATIONS = (
    *("learned", "learned (16)", "imitation only", "imitation only (16)", "short", "short (16)"),
    *("one label", "one label (16)", "MLP", "MLP (16)", "RL only", "RL only (16)"),
)
SIZES = (20, 200, 2000)
_RANGES = ((1, 10), (11, 20), (21, 40), (41, 60))
"""Of jobs, in the table of times."""
NAMES = {"lists": "lists (best of 18)", "one list": "one list (smith, earliest finish)"}


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
    found = [*of(rows, set="small"), *of(rows, set="time")]
    return speed(found, ranges=_RANGES, size_of=_jobs, unit="jobs")


def _jobs(row: LearnedRow) -> int:
    from gangplan.instances.generators.families import make

    return len(make("schedule", row.family, row.seed, row.size).jobs)


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
