"""Sort within compiled code: numpy's sorts bring ten times as much to compile."""

from __future__ import annotations

import numpy as np

from .kernel import Floats, Ints, inner

_SMALL = 15
"""Keys at a stretch that insertion sorts faster."""
_DEEPEST = 64
"""Stretches put off at once: each is the longer part of the one before, so that they are no more than the bits of n."""


@inner
def argsort(keys: Floats, stable: bool) -> Ints:
    """Return the order of ascending keys, by quicksort (Hoare 1962) with medians of three, as numba's `np.argsort`.

    Args:
        keys: no nan among them.
        stable: whether equal keys keep their order; else it is what the exchanges make of it.
    """
    order = np.arange(len(keys))
    low, high = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    low[0], high[0] = 0, len(keys) - 1
    waiting = 1
    while waiting:
        waiting -= 1
        a, b = low[waiting], high[waiting]
        while b - a >= _SMALL:
            i = _part(keys, order, a, b, stable)
            if b - i > i - a:
                low[waiting], high[waiting] = i + 1, b
                b = i - 1
            else:
                low[waiting], high[waiting] = a, i - 1
                a = i + 1
            waiting += 1
        for i in range(a + 1, b + 1):
            x, j = order[i], i
            while j > a and _before(keys, x, order[j - 1], stable):
                order[j] = order[j - 1]
                j -= 1
            order[j] = x
    return order


@inner
def _before(keys: Floats, x: int, y: int, stable: bool) -> bool:
    return bool(keys[x] < keys[y] or (stable and keys[x] == keys[y] and x < y))


@inner
def _part(keys: Floats, order: Ints, low: int, high: int, stable: bool) -> int:
    """Move what is less than the median of first, middle and last before it, what is greater behind; return where."""
    middle = (low + high) >> 1
    for x, y in ((low, middle), (middle, high), (low, middle)):
        if _before(keys, order[y], order[x], stable):
            order[x], order[y] = order[y], order[x]
    order[high], order[middle] = order[middle], order[high]
    pivot = order[high]
    i, j = low, high - 1
    while True:
        while i < high and _before(keys, order[i], pivot, stable):
            i += 1
        while j >= low and _before(keys, pivot, order[j], stable):
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i, j = i + 1, j - 1
    order[i], order[high] = order[high], order[i]
    return i
