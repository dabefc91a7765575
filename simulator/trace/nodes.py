"""Free GPUs of equal nodes: the fullest node that fits, and whole free nodes, by bit sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

_WORD = 64


@kernel
def new(nodes: int, gpus: int) -> Any:
    """Return (free GPUs of each node, a bit set of the nodes with each number of free GPUs, how many those are)."""
    free = np.full(nodes, gpus, dtype=np.int64)
    words = np.zeros((gpus + 1, (nodes + _WORD - 1) // _WORD), dtype=np.uint64)
    count = np.zeros(gpus + 1, dtype=np.int64)
    for n in range(nodes):
        words[gpus, n // _WORD] |= np.uint64(1) << np.uint64(n % _WORD)
    count[gpus] = nodes
    return free, words, count


@kernel
def change(free: Any, words: Any, count: Any, node: int, amount: int) -> None:
    """Add `amount`, which may be negative, to the free GPUs of a node."""
    bit = np.uint64(1) << np.uint64(node % _WORD)
    word = node // _WORD
    words[free[node], word] &= ~bit
    count[free[node]] -= 1
    free[node] += amount
    words[free[node], word] |= bit
    count[free[node]] += 1


@kernel
def fullest(words: Any, count: Any, need: int) -> int:
    """Return the node with the fewest free GPUs, `need` at least, the lowest index of these; -1 if there is none."""
    for level in range(need, len(count)):
        if count[level]:
            for w in range(words.shape[1]):
                if words[level, w]:
                    return w * _WORD + _lowest(words[level, w])
    return -1


@kernel
def _lowest(word: Any) -> int:
    """Return the index of the lowest bit set."""
    i = 0
    while not word & np.uint64(0xFF):
        word >>= np.uint64(8)
        i += 8
    while not word & np.uint64(1):
        word >>= np.uint64(1)
        i += 1
    return i


@kernel
def fits(free: Any, words: Any, count: Any, need: int, gpus: int) -> bool:
    """Return whether a job of `need` GPUs fits, consolidated."""
    if need <= gpus:
        return bool(count[need:].any())
    return bool(count[gpus] >= (need + gpus - 1) // gpus)


@kernel
def take(free: Any, words: Any, count: Any, need: int, gpus: int, chosen: Any) -> int:
    """Occupy `need` GPUs of nodes that `fits` has found to be there; write them to `chosen` and return how many."""
    if need <= gpus:
        chosen[0] = fullest(words, count, need)
        change(free, words, count, chosen[0], -need)
        return 1
    used = 0
    while need > 0:
        chosen[used] = fullest(words, count, gpus)
        change(free, words, count, chosen[used], -min(need, gpus))
        need -= gpus
        used += 1
    return used
