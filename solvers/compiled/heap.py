"""A heap of numbers from 0 on, such as ops, the most urgent on top; compiled."""

from __future__ import annotations

from .kernel import Floats, Ints, lean


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
