"""The book: the few settings of the dials among which the network chooses, picked so that some one always does well."""

from __future__ import annotations

from functools import cache

import numpy as np

from gangplan.instances.arrays import FloatArray

from .dials import draw
from .play import lengths
from .table import Name, case


@cache
def make_book(chosen: tuple[Name, ...], drawn: int, kept: int, seed: int) -> FloatArray:
    """Return settings of the dials, (kept, D).

    Of random ones, always the next one with which the best of the book gets best on average over the cases: greedy
    for a submodular gain, so at least 1 - 1/e of the best book's (Nemhauser, Wolsey, Fisher 1978).

    Args:
        chosen: instances to judge by.
        drawn: how many random settings there are to pick from; HEFT is the first.
        kept: how many are picked.
        seed: draws them.
    """
    candidates = draw(np.random.default_rng(seed), drawn)
    table = np.stack([lengths(case(name, messages=False), candidates) for name in chosen])
    return candidates[pick(table, kept)]


def pick(table: FloatArray, kept: int) -> list[int]:
    """Return the columns of (instances, settings) that are picked, the first one alone the best on average."""
    best = np.full(len(table), np.inf)
    chosen: list[int] = []
    for _ in range(min(kept, table.shape[1])):
        total = np.minimum(best[:, None], table).mean(axis=0)
        total[chosen] = np.inf
        chosen.append(int(total.argmin()))
        best = np.minimum(best, table[:, chosen[-1]])
    return chosen
