"""What compiled searches share: random numbers, a heap, and sorting."""

from __future__ import annotations

import numpy as np

from .kernel import Floats, Ints, inner, lean

_SMALL = 15
"""Keys at a stretch that insertion sorts faster."""
_DEEPEST = 64
"""Stretches put off at once: each is the longer part of the one before, so that they are no more than the bits of n."""


def ints(size: int) -> Ints:
    """Return so many zeros, int64."""
    return np.zeros(size, np.int64)


@lean
def sow(seed: int) -> None:
    """Begin anew with a seed."""
    np.random.seed(seed)  # noqa: NPY002


@lean
def below(n: int) -> int:
    """Return a whole number from 0 to n - 1."""
    return np.random.randint(n)  # noqa: NPY002


@lean
def uniform() -> float:
    """Return a number from 0 to 1, which it never is."""
    return np.random.random()  # noqa: NPY002


@lean
def normal() -> float:
    """Return a number with mean 0 and deviation 1."""
    return np.random.normal()  # noqa: NPY002


@lean
def first(x: int, y: int, value: Floats, place: Ints) -> bool:
    """Return whether x comes before y: the higher value, of equals the first in `place`."""
    return bool(value[x] > value[y] or (value[x] == value[y] and place[x] < place[y]))


@lean
def push(heap: Ints, size: int, v: int, value: Floats, place: Ints) -> int:
    """Enter v into a heap, the highest value on top, of equals the first in `place`; return its size."""
    i = size
    heap[i] = v
    while i > 0 and first(heap[i], heap[(i - 1) // 2], value, place):
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2
    return size + 1


@lean
def pop(heap: Ints, size: int, value: Floats, place: Ints) -> int:
    """Take the top off the heap and return its size."""
    size -= 1
    heap[0] = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return size
        if child + 1 < size and first(heap[child + 1], heap[child], value, place):
            child += 1
        if not first(heap[child], heap[i], value, place):
            return size
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@inner
def argsort(keys: Floats, stable: bool) -> Ints:
    """Return the order of ascending keys, by quicksort (Hoare 1962) with medians of three, as numba's `np.argsort`.

    No key is nan. Equal keys keep their order if `stable`; else it is what the exchanges make of it.
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
