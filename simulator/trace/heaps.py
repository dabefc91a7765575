"""Binary heaps in flat arrays, compiled: those of the standard library are slow on a million jobs."""

from __future__ import annotations

from typing import Any

from gangplan.solvers.compiled.kernel import kernel


@kernel
def push(heap: Any, offset: int, size: int, item: int, key: Any) -> None:
    """Add `item` to the heap of `size` items that starts at heap[offset]; the least key[item] is on top."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if key[heap[offset + up]] <= key[item]:
            break
        heap[offset + i] = heap[offset + up]
        i = up
    heap[offset + i] = item


@kernel
def pop(heap: Any, offset: int, size: int, key: Any) -> int:
    """Remove and return the top of the heap of `size` items."""
    top = heap[offset]
    item = heap[offset + size - 1]
    n = size - 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and key[heap[offset + child + 1]] < key[heap[offset + child]]:
            child += 1
        if key[item] <= key[heap[offset + child]]:
            break
        heap[offset + i] = heap[offset + child]
        i = child
    heap[offset + i] = item
    return int(top)
