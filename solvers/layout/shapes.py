"""Shapes of stages: how many blocks of each kind one has; where blocks lie within a stage makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import IntArray

_FEW = 6
"""Layers without experts whose places among interleaved chunks are all tried."""


class Shapes(NamedTuple):
    """The shapes that a stage may have.

    Attributes:
        counts: blocks of each kind, int64 (n, K).
        of: shape of a stage by the blocks up to its end and its own, int64 (L + 1, most + 1); n if there is none.
    """

    counts: NDArray[np.int64]
    of: NDArray[np.int64]


def intervals(kinds: IntArray, most: int) -> Shapes:
    """Return the shapes of all stages of one chunk with at most so many blocks."""
    count = len(kinds)
    sums = np.zeros((count + 1, int(kinds.max()) + 1), dtype=np.int64)
    sums[np.arange(1, count + 1), kinds] = 1
    sums = sums.cumsum(axis=0)
    begin, size = np.divmod(np.arange(count * most), most)
    end = begin + size + 1
    begin, end = begin[end <= count], end[end <= count]
    counts, which = np.unique(sums[end] - sums[begin], axis=0, return_inverse=True)
    of = np.full((count + 1, most + 1), len(counts))
    of[end, end - begin] = which.ravel()
    return Shapes(counts, of)


def _first(kinds: IntArray) -> int:
    """Return how many layers are of the first kind, 0 if all are."""
    return int((kinds[1:-1] == kinds[1]).sum()) if kinds[1] != kinds[-2] else 0


def scattered(kinds: IntArray) -> bool:
    """Return whether there are too many kinds of layer, or layers of the first, for interleaved chunks."""
    return len({*kinds[1:-1].tolist()}) > 2 or _first(kinds) > _FEW


def spread(kinds: IntArray, stages: int) -> Iterator[tuple[int, ...]]:
    """Yield how many layers of the first kind the first chunks of the first stages may have, if there are two kinds.

    What is left of these goes to the chunk of the next stage, so that only the last of them has other layers too.
    """
    number = _first(kinds)
    if not number:
        yield ()
        return

    def parts(rest: int, room: int) -> Iterator[tuple[int, ...]]:
        if room and rest:
            yield (rest,)
            for here in range(1, rest):
                for others in parts(rest - here, room - 1):
                    yield (here, *others)

    yield from parts(number, stages)
    for others in parts(number, stages - 1):  # the embedding alone
        yield (0, *others)


def interleaved(kinds: IntArray, most: int, stage: int, stages: int, virtual: int, first: tuple[int, ...]) -> Shapes:
    """Return the shapes of a stage of several chunks, whose layers of the first kind are given; see `spread`."""
    count, of_first = len(kinds), first[stage] if stage < len(first) else 0
    ends = (stage == 0), (stage == stages - 1)
    fixed = of_first + sum(ends)
    least = max(virtual, of_first + ends[0] + virtual - 1)
    sizes = np.arange(least, most + 1)
    counts = np.zeros((len(sizes), int(kinds.max()) + 1), dtype=np.int64)
    counts[:, kinds[0]], counts[:, kinds[-1]] = ends
    counts[:, kinds[1]] += of_first
    counts[:, kinds[-2]] += sizes - fixed
    of = np.full((count + 1, most + 1), len(sizes))
    of[:, sizes] = np.arange(len(sizes))
    return Shapes(counts, of)


def chunks(sizes: list[int], virtual: int, first: tuple[int, ...]) -> IntArray:
    """Return the blocks of each chunk of stages with so many blocks, int32 (virtual p,), as even as can be."""
    rows = np.zeros((virtual, len(sizes)), dtype=np.int32)
    for s, size in enumerate(sizes):
        begins = (first[s] if s < len(first) else 0) + (s == 0)  # what the first chunk has at least
        whole = s < len(first) - 1 and virtual > 1  # and has nothing else
        rows[0, s] = begins if whole else max(begins, -(-size // virtual))
        if virtual > 1:
            rest, more = divmod(size - rows[0, s], virtual - 1)
            rows[1:, s] = rest
            rows[virtual - more :, s] += 1 if more else 0
    return rows.ravel()
