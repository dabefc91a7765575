"""The tables of docs/learned-placement.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from gangplan.solvers.placement.methods import POLICIES

from .cells import table
from .learned_rows import LearnedRow
from .learned_speed import speed
from .learned_tables import gaps, interval, of, with_best

METHODS = (
    *("learned", "learned (16)", "local search", "local search (16)", "best heuristic"),
    *("least_interference", "nearest_by_size", "topology", "best_fit", "greedy", "greedy (16)", "greedy, placed"),
    *("learned, placed", "imitation only, placed", "MLP, placed", "flat, placed", "trees, placed", "random, placed"),
    "exact",
)
ABLATIONS = (
    *("learned, placed", "imitation only, placed", "RL only, placed", "flat, placed", "MLP, placed"),
    *("one label, placed", "greedy, placed", "learned", "greedy", "learned (16)", "greedy (16)"),
)
_TRANSFER = (
    *("learned", "learned (16)", "local search", "local search (16)", "learned, placed", "imitation only, placed"),
    *("greedy", "greedy, placed", "best heuristic"),
)
_RANGES = (8, 10), (11, 13), (14, 16)
"""Nodes."""


def _small(rows: Sequence[LearnedRow]) -> str:
    return gaps(with_best(of(rows, set="small", proved=True), POLICIES), METHODS)


def _open(rows: Sequence[LearnedRow]) -> str:
    return gaps(with_best(of(rows, set="small", proved=False), POLICIES), METHODS)


def _unseen(family: str) -> Callable[[Sequence[LearnedRow]], str]:
    return lambda rows: gaps(with_best(of(rows, set="unseen", family=family), POLICIES), METHODS)


def _ablations(rows: Sequence[LearnedRow]) -> str:
    return gaps(of(rows, set="sizes", size=64), ABLATIONS)


def transfer(rows: Sequence[LearnedRow]) -> dict[str, dict[int, list[float]]]:
    """Return gaps to the bound by method and number of nodes."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in with_best(of(rows, set="sizes"), POLICIES):
        if row.objective is not None:
            found[row.method][row.size].append(row.gap)
    return found


def _transfer(rows: Sequence[LearnedRow]) -> str:
    found = transfer(rows)
    sizes = sorted({size for by in found.values() for size in by})
    lines = [
        (method, *(f"{np.mean(found[method][n]):.2%}" if found[method].get(n) else "" for n in sizes))
        for method in _TRANSFER
        if method in found
    ]
    return table(("method", *(f"{n:,} nodes" for n in sizes)), lines)


def _rl(rows: Sequence[LearnedRow]) -> str:
    """Return what RL changes on each size, paired by instance."""
    found = [*of(rows, set="sizes"), *of(rows, set="passes")]
    cost = {(row.instance, row.method): row.objective for row in found if row.objective is not None}
    lines = []
    for size in sorted({x[2] for x, _ in cost}):
        pairs = [
            cost[x, "learned, placed"] / cost[x, "imitation only, placed"] - 1
            for x, method in cost
            if x[2] == size and method == "learned, placed" and (x, "imitation only, placed") in cost
        ]
        if len(pairs) > 1:
            low, high = interval(pairs)
            better = f"{sum(p < -1e-9 for p in pairs)} of {len(pairs)}"
            lines.append((f"{size:,}", f"{np.mean(pairs):+.2%}", f"{low:+.2%} to {high:+.2%}", better))
    return table(("nodes", "change of the cost", "95% interval", "better"), lines)


def _speed(rows: Sequence[LearnedRow]) -> str:
    return speed(of(rows, set="small"), ranges=_RANGES, size_of=_nodes, unit="nodes")


def _nodes(row: LearnedRow) -> int:
    from gangplan.instances.generators.families import make

    return make("placement", row.family, row.seed, row.size).fleet.n_nodes


TABLES: dict[str, Callable[[Sequence[LearnedRow]], str]] = {
    "small": _small,
    "open": _open,
    "two_kinds": _unseen("two kinds of GPUs"),
    "constrained": _unseen("constrained"),
    "servers": _unseen("parameter servers"),
    "ablations": _ablations,
    "transfer": _transfer,
    "rl": _rl,
    "speed": _speed,
}
