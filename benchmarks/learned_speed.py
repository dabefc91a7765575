"""How long exact solvers take for a proof, and the policy for a plan, on the same instances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .cells import table
from .learned_rows import LearnedRow
from .learned_tables import of

_RANGES = ((1, 30), (31, 50), (51, 75), (76, 100), (1, 100))
"""Of ops; the last one is all of them."""


def speed(rows: Sequence[LearnedRow], sets: Sequence[str], exact: str) -> str:
    """Return a line a range of sizes: times of the exact solver and of the policy, where the optimum was proved.

    Args:
        rows: of one problem.
        sets: of instances.
        exact: the method that proves.
    """
    from gangplan.learned.labels import make

    found = [x for name in sets for x in of(rows, set=name, proved=True)]
    took = {(x.instance, x.method): x.milliseconds for x in found}
    graphs = {x.instance: make(x.problem, x.family, x.seed, x.size) for x in found}
    ops = {at: made.graph.n_ops for at, made in graphs.items()}  # type: ignore[union-attr]
    lines = []
    for low, high in _RANGES:
        mine = [at for at, n in ops.items() if low <= n <= high and (at, "learned") in took and (at, exact) in took]
        if mine:
            proof, greedy, many = (np.array([took[at, x] for at in mine]) for x in (exact, "learned", "learned (16)"))
            lines.append((
                "all" if (low, high) == _RANGES[-1] else f"{low} to {high}", str(len(mine)), f"{proof.mean():,.0f}",
                f"{np.median(proof):,.0f}", f"{proof.max():,.0f}", f"{greedy.mean():.1f}", _share(proof, greedy),
                f"{many.mean():.1f}", _share(proof, many), f"{(greedy <= 0.01 * proof).mean():.0%}",
            ))  # fmt: skip
    return table(
        (
            "ops", "instances", f"{exact}, mean ms", "median ms", "most ms", "learned, mean ms", "ratio of means",
            "learned (16), mean ms", "ratio of means", "learned within 1/100",
        ),
        lines,
    )  # fmt: skip


def _share(exact: np.ndarray, learned: np.ndarray) -> str:
    return f"1/{exact.mean() / learned.mean():.0f}"
