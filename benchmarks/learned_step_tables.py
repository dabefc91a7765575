"""The tables of docs/learned-step.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from .cells import table
from .learned_rows import LearnedRow
from .learned_speed import speed
from .learned_tables import gaps, interval, of, with_best

_HEURISTICS = ("heft", "list_schedule", "contiguous", "critical_path")
METHODS = (
    *("learned", "learned (16)", "best heuristic", *_HEURISTICS, "local search"),
    *("GNN", "GNN (16)", "trees", "trees (16)", "book", "book (16)", "random", "random (16)", "exact"),
)
ABLATIONS = (
    *("learned", "learned (16)", "imitation only", "imitation only (16)", "RL only", "RL only (16)"),
    *("one label", "one label (16)", "GNN", "GNN (16)"),
)


def _proved(name: str) -> Callable[[Sequence[LearnedRow]], str]:
    return lambda rows: gaps(with_best(of(rows, set=name, proved=True), _HEURISTICS), METHODS)


def _ablations(rows: Sequence[LearnedRow]) -> str:
    return gaps(of(rows, set="sizes", size=1000), ABLATIONS)


def differences(rows: Sequence[LearnedRow]) -> str:
    """Return a line a rival: by how much the policy's gap is below its own, in points, and the 95% interval of that."""
    by: dict[str, dict[object, float]] = defaultdict(dict)
    for row in of(rows, set="stages"):
        by[row.method][row.instance] = row.gap
    lines = []
    for rival in ("imitation only", "RL only", "one label", "GNN", "book", "heft"):
        for many in ("", " (16)"):
            pair = f"learned{many}", rival if rival == "heft" else f"{rival}{many}"
            less = [by[pair[1]][x] - gap for x, gap in by[pair[0]].items() if x in by[pair[1]]]
            if less:
                low, high = interval(less)
                span = f"{100 * low:.2f} to {100 * high:.2f}"
                lines.append((f"{pair[0]} against {pair[1]}", str(len(less)), f"{100 * np.mean(less):.2f}", span))
    return table(("pair", "instances", "points less", "95% interval"), lines)


def transfer(rows: Sequence[LearnedRow]) -> dict[str, dict[int, list[float]]]:
    """Return gaps to the bound by method and size, of graphs whose families were trained on."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    bounds = {row.instance: row.reference for row in rows if row.method == "bound"}
    for row in with_best(rows, _HEURISTICS):
        if row.set == "sizes" and row.objective is not None:
            found[row.method][row.size].append(row.objective / bounds[row.instance] - 1)
    return found


def _transfer(rows: Sequence[LearnedRow]) -> str:
    found = transfer(rows)
    lines = [
        (
            method,
            *(f"{np.mean(found[method][size]):.2%}" if found[method].get(size) else "" for size in (100, 1000, 10_000)),
        )
        for method in ("learned", "learned (16)", "best heuristic", "book (16)", "heft", "local search (20 s)")
    ]
    return table(("method", "100 ops", "1,000 ops", "10,000 ops"), lines)


TABLES: dict[str, Callable[[Sequence[LearnedRow]], str]] = {
    "small": _proved("small"),
    "unseen_family": _proved("unseen family"),
    "published": _proved("published"),
    "large": lambda rows: gaps(with_best(of(rows, set="sizes", size=1000), _HEURISTICS), METHODS),
    "transfer": _transfer,
    "ablations": _ablations,
    "stages": differences,
    "speed": lambda rows: speed([x for x in rows if x.set in ("small", "unseen family")]),
}
