"""The tables of docs/learned-placement.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from gangplan.solvers.placement.methods import POLICIES

from .cells import table
from .learned_rows import LearnedRow
from .learned_tables import gaps, interval, of, with_best

METHODS = (
    *("learned", "learned (16)", "best heuristic", "least_interference", "nearest_by_size", "topology", "best_fit"),
    *("greedy", "greedy (16)", "local search", "local search (16)", "MLP", "MLP (16)", "trees", "random"),
    "exact",
)
ABLATIONS = (
    *("learned", "learned (16)", "imitation only", "imitation only (16)", "RL only", "RL only (16)"),
    *("one label", "one label (16)", "flat", "flat (16)", "MLP", "MLP (16)", "greedy", "greedy (16)"),
)
_TRANSFER = (
    *("learned", "learned (16)", "imitation only", "greedy", "local search", "local search (16)", "best heuristic"),
)


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
    cost = {(row.instance, row.method): row.objective for row in of(rows, set="sizes") if row.objective is not None}
    lines = []
    for suffix in ("", " (16)"):
        for size in sorted({x[2] for x, _ in cost}):
            pairs = [
                cost[x, f"learned{suffix}"] / cost[x, f"imitation only{suffix}"] - 1
                for x, method in cost
                if x[2] == size and method == f"learned{suffix}" and (x, f"imitation only{suffix}") in cost
            ]
            if len(pairs) > 1:
                low, high = interval(pairs)
                better = f"{sum(p < -1e-9 for p in pairs)} of {len(pairs)}"
                decoding = "16 samples" if suffix else "greedy"
                lines.append((decoding, f"{size:,}", f"{np.mean(pairs):+.2%}", f"{low:+.2%} to {high:+.2%}", better))
    return table(("decoding", "nodes", "change of the cost", "95% interval", "better"), lines)


TABLES: dict[str, Callable[[Sequence[LearnedRow]], str]] = {
    "small": _small,
    "open": _open,
    "two_kinds": _unseen("two kinds of GPUs"),
    "constrained": _unseen("constrained"),
    "servers": _unseen("parameter servers"),
    "ablations": _ablations,
    "transfer": _transfer,
    "rl": _rl,
}
