"""Local search over chains: the recurrence on the ideals around the boundaries of the best chain so far.

Where the order has too many ideals to list, a family of some thousand around the present boundaries still holds
exponentially many chains, and the recurrence finds the best of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from .quotient import Quotient


class Neighbourhood:
    """Walks from ideal to ideal, adding or removing one group at a time.

    Args:
        q: the quotient the ideals belong to.
        rng: breaks ties, so that another round sees other ideals.
    """

    def __init__(self, q: Quotient, rng: np.random.Generator) -> None:
        self.q = q
        self.rng = rng
        before, after = q.neighbours
        self.needs = [sum(1 << a for a in x) for x in before]
        self.holds = [sum(1 << b for b in x) for x in after]
        self.before, self.after = before, after
        self.pins = [sum(1 << g for g in pins) for pins, _ in q.nets]
        self.touching: list[list[int]] = [[] for _ in range(q.n_groups)]
        for e, (pins, _) in enumerate(q.nets):
            for g in pins:
                self.touching[g].append(e)
        self.cost = [cost for _, cost in q.nets]
        self.work = q.work.tolist()

    def around(self, ideal: int, count: int, reach: float) -> Iterator[int]:
        """Yield up to `count` ideals whose work differs from `ideal`'s by at most `reach`, cheapest cuts first."""
        seen = {ideal}
        queue: list[tuple[float, float, int, float, float, frozenset[int], frozenset[int]]] = []
        ready, tips = self._frontier(ideal)
        heappush(queue, (0.0, 0.0, ideal, 0.0, 0.0, ready, tips))
        while queue and count:
            _, _, here, opened, shift, ready, tips = heappop(queue)
            yield here
            count -= 1
            for g in ready | tips:
                other = here ^ 1 << g
                moved = shift + (self.work[g] if g in ready else -self.work[g])
                if other in seen or abs(moved) > reach:
                    continue
                seen.add(other)
                cut = opened + self._opening(here, other, g)
                grown = self._step(other, g, g in ready, ready, tips)
                # going far for the same cut is as good as staying near: random order among equals
                heappush(queue, (cut, float(self.rng.random()), other, cut, moved, *grown))

    def _opening(self, here: int, other: int, g: int) -> float:
        """Return how much more the cut at `other` costs than the one at `here`."""
        change = 0.0
        for e in self.touching[g]:
            pins = self.pins[e]
            was, now = here & pins, other & pins
            change += self.cost[e] * ((now not in (0, pins)) - (was not in (0, pins)))
        return change

    def _frontier(self, ideal: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the groups that may be added and those that may be removed."""
        groups = range(self.q.n_groups)
        ready = frozenset(g for g in groups if not ideal >> g & 1 and not self.needs[g] & ~ideal)
        tips = frozenset(g for g in groups if ideal >> g & 1 and not self.holds[g] & ideal)
        return ready, tips

    def _step(
        self, ideal: int, g: int, added: bool, ready: frozenset[int], tips: frozenset[int]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Return the frontier after g was added or removed; `ideal` is already the new one."""
        if added:
            opened = {x for x in self.after[g] if not self.needs[x] & ~ideal}
            return (ready - {g}) | opened, (tips - set(self.before[g])) | {g}
        freed = {x for x in self.before[g] if not self.holds[x] & ideal}
        return (ready - set(self.after[g])) | {g}, (tips - {g}) | freed
