"""Small changes of a plan: some neighbouring groups go to another slot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .reduced import Reduced
from .rounding import host_slots

_BUNCH = 6
"""Items that may move at once."""


class Moves:
    """Makes random moves that respect what a slot can hold by itself.

    Args:
        r: the problem.
        rng: chooses.
    """

    def __init__(self, r: Reduced, rng: np.random.Generator) -> None:
        self.r, self.rng = r, rng
        self.home = host_slots(r)
        self.hosts = [s for s, slot in enumerate(r.slots) if slot.host]

    def near(self, slots: Sequence[int]) -> list[int] | None:
        """Return `slots` with a bunch moved to the slot of a neighbour, a host or an idle call, `None` if stuck."""
        r, rng = self.r, self.rng
        bunch = self._bunch(slots)
        here = slots[bunch[0]]
        before, after = r.neighbours
        around = {slots[r.group_of[u]] for g in bunch for v in r.groups[g] for u in (*before[v], *after[v])}
        idle = [s for s in r.callers if s not in set(slots)][:1]
        targets = sorted(({*around, *idle, *self.hosts, self.home[bunch[0]]} & set(range(len(r.slots)))) - {here})
        targets = [s for s in targets if all(r.fits[g, s] for g in bunch)]
        if not targets:
            return None
        moved = list(slots)
        target = targets[int(rng.integers(len(targets)))]
        for g in bunch:
            moved[g] = target
        return moved

    def _bunch(self, slots: Sequence[int]) -> list[int]:
        """Return some groups of one slot, each next to another."""
        r, rng = self.r, self.rng
        v = int(rng.integers(r.n_items))
        groups = [int(r.group_of[v])]
        for _ in range(int(rng.integers(_BUNCH))):
            beside = r.neighbours[int(rng.integers(2))][v]
            beside = [u for u in beside if slots[r.group_of[u]] == slots[groups[0]]]
            if not beside:
                break
            v = beside[int(rng.integers(len(beside)))]
            if int(r.group_of[v]) not in groups:
                groups.append(int(r.group_of[v]))
        return groups
