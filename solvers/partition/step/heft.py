"""Packings of the memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import IntArray

from ...run import never
from .model import Prepared

_TRIES = 40
"""Packings of the memory that are tried."""


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
