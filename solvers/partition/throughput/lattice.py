"""Ideals: the sets of groups a pipeline can have finished at a stage boundary, as bits of integers.

A contiguous pipeline is a chain of ideals, from the empty set to all groups (Tarnawski et al., NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from .quotient import Quotient


def all_ideals(q: Quotient, limit: int, stopped: Callable[[], bool] = lambda: False) -> list[int] | None:
    """Return every ideal of the order, or `None` if there are more than `limit` or `stopped` turns true."""
    return between(q, 0, (1 << q.n_groups) - 1, limit, stopped)


def between(
    q: Quotient, low: int, high: int, limit: int, stopped: Callable[[], bool] = lambda: False
) -> list[int] | None:
    """Return every ideal from `low` to `high`, both ideals, or `None` if there are more than `limit`."""
    before, after = q.neighbours
    needs = [sum(1 << a for a in x) for x in before]
    ready = tuple(g for g in range(q.n_groups) if high >> g & 1 and not low >> g & 1 and not needs[g] & ~low)
    found = {low}
    layer = [(low, ready)]
    while layer:
        grown = []
        for ideal, ready in layer:
            if len(found) > limit or stopped():
                return None
            for g in ready:
                larger = ideal | 1 << g
                if larger not in found:
                    found.add(larger)
                    opened = (x for x in after[g] if not needs[x] & ~larger and high >> x & 1)
                    grown.append((larger, (*(x for x in ready if x != g), *opened)))
        layer = grown
    return list(found)


def prefixes(order: Iterable[int]) -> Iterator[int]:
    """Yield the ideals that a linear extension runs through."""
    ideal = 0
    yield ideal
    for g in order:
        ideal |= 1 << g
        yield ideal


def linear_extension(q: Quotient, rng: np.random.Generator | None = None) -> list[int]:
    """Return an order of the groups that respects the edges and finishes branches before it starts others.

    Of the groups that are ready the one that became so last comes next, which keeps few outputs open; `rng`
    breaks that rule now and then, for a family of different orders.
    """
    before, after = q.neighbours
    missing = [len(x) for x in before]
    ready = [g for g in reversed(range(q.n_groups)) if not missing[g]]
    order = []
    while ready:
        pick = -1 if rng is None or rng.random() < 0.8 else int(rng.integers(len(ready)))
        g = ready.pop(pick)
        order.append(g)
        for x in reversed(after[g]):
            missing[x] -= 1
            if not missing[x]:
                ready.append(x)
    return order
