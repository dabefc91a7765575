"""How long exact solvers take for a proof, and the policy for a plan, on the same instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .cells import table
from .learned_rows import LearnedRow

OPS = (1, 30), (31, 50), (51, 75), (76, 100)
"""Ranges of ops."""


def speed(
    rows: Sequence[LearnedRow],
    exact: str = "exact",
    *,
    ranges: Sequence[tuple[int, int]] = OPS,
    size_of: Callable[[LearnedRow], int] | None = None,
    unit: str = "ops",
) -> str:
    """Return a line a range of sizes: times of the exact solver and of the policy.

    Where the exact solver ran out of time, it counts with the time that it had: it would have needed more.

    Args:
        rows: of instances that the exact solver and the policy have both been judged on.
        exact: the method that proves.
        ranges: least and most size of each line; one of all sizes comes last.
        size_of: an instance; its ops if not given.
        unit: of sizes.
    """
    took = {(x.instance, x.method): x for x in rows}
    size = {x.instance: (size_of or _ops)(x) for x in rows if x.method == exact and (x.instance, "learned") in took}
    lines = []
    for low, high in (*ranges, (0, max(size.values(), default=0))):
        mine = [at for at, n in size.items() if low <= n <= high]
        if not mine:
            continue
        methods = exact, "learned", "learned (16)"
        proof, greedy, many = (np.array([took[at, m].milliseconds for at in mine]) for m in methods)
        lines.append((
            f"{low} to {high}" if low else "all", str(len(mine)),
            f"{np.mean([took[at, exact].proved for at in mine]):.0%}", f"{np.median(proof):,.0f}",
            f"{proof.mean():,.0f}", f"{greedy.mean():.1f}", _share(proof, greedy), f"{many.mean():.1f}",
            _share(proof, many), f"{(greedy <= 0.01 * proof).mean():.0%}",
        ))  # fmt: skip
    head = (
        unit, "instances", "proved", f"{exact}, median ms", "mean ms", "learned, mean ms", "ratio of means",
        "learned (16), mean ms", "ratio of means", "learned within 1/100",
    )  # fmt: skip
    return table(head, lines)


def _ops(row: LearnedRow) -> int:
    from gangplan.instances.generators.families import make

    return make(row.problem, row.family, row.seed, row.size).graph.n_ops  # type: ignore[union-attr]


def _share(exact: np.ndarray, learned: np.ndarray) -> str:
    return f"1/{exact.mean() / learned.mean():.0f}"
