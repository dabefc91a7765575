"""HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 2002) op by op, as lessons show it, and packings of the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gangplan.instances.arrays import IntArray

from ...run import Run, never
from .model import Prepared
from .schedule import Partial

_TRIES = 40
"""Packings of the memory that are tried."""


def one_by_one(run: Run, p: Prepared, partial: Partial, order: list[int]) -> Iterator[tuple[int, int]]:
    """Put each op of `order` where it ends first, and yield it and its device; end where a group has no room left."""
    where, left = [-1] * p.n_groups, p.room.tolist()
    allowed, need, twins = p.allowed.tolist(), p.group_memory.tolist(), p.twins.tolist()
    for v in order:
        g = int(p.group_of[v])
        if where[g] < 0:
            used = set(where)
            # of twins in no use the first stands for all
            unused = {twin: d for d, twin in reversed(list(enumerate(twins))) if d not in used}
            others = (d for d, twin in enumerate(twins) if d in used or unused[twin] == d)
            choice = [d for d in others if allowed[g][d] and need[g] <= left[d]]
            if not choice:
                return
            where[g] = _earliest(run, partial, v, choice)
            left[where[g]] -= need[g]
        if run.stopped:
            return
        partial.put(v, where[g])
        yield v, where[g]


def _earliest(run: Run, partial: Partial, v: int, choice: list[int]) -> int:
    """Return the device on which op v ends first; of equals the one with most of what it reads."""
    if len(choice) == 1:
        return choice[0]
    near = [partial.device[u] for u in partial.decoder.before[v]]
    return min(choice, key=lambda d: (0.0 if run.stopped else partial.would_end(v, d), -near.count(d)))


def pack(p: Prepared, seed: int = 0, stopped: Callable[[], bool] = never) -> IntArray | None:
    """Return a device for each group so that all fit, int32 (G,), or `None`: best fit, in orders ever more random."""
    rng = np.random.default_rng(seed)
    # those that few devices take come first
    choices, size = p.allowed.sum(axis=1), p.group_memory / max(1.0, float(p.group_memory.max()))
    for i in range(_TRIES):
        left, where = p.room.copy(), np.full(p.n_groups, -1, dtype=np.int32)
        for g in np.lexsort((-size - rng.random(p.n_groups) * i / _TRIES, choices)).tolist():
            if stopped():
                return None
            fitting = np.flatnonzero(p.allowed[g] & (p.group_memory[g] <= left))
            if not len(fitting):
                break
            where[g] = d = fitting[left[fitting].argmin()]
            left[d] -= p.group_memory[g]
        else:
            return where
    return None
