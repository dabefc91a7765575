"""Shapes of stages: how many blocks of each kind one has; where blocks lie within a stage makes no difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import IntArray

FEW = 6
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
    inner = kinds[1:-1]
    return int((inner == inner[0]).sum()) if len({*inner.tolist()}) > 1 else 0


def scattered(kinds: IntArray) -> bool:
    """Return whether there are too many kinds of layer, or layers of the first, for interleaved chunks."""
    return len({*kinds[1:-1].tolist()}) > 2 or _first(kinds) > FEW


class First(NamedTuple):
    """Where layers of the first kind are among interleaved chunks.

    Attributes:
        layers: of each of the first stages, how many.
        last: the last chunk with any, or with the embedding; those before it have nothing else.
    """

    layers: tuple[int, ...]
    last: int

    def of(self, stage: int, stages: int) -> tuple[int, int]:
        """Return how many a stage has, and how many of its chunks are up to the last one."""
        here = self.layers[stage] if stage < len(self.layers) else 0
        return here, self.last // stages + (stage <= self.last % stages)


UNSPREAD = First((), 0)
"""There are none, and the first chunk has the embedding."""


def spread(kinds: IntArray, stages: int, virtual: int) -> Iterator[First]:
    """Yield every way in which the layers of the first kind, if there are two, may lie among interleaved chunks."""
    number = _first(kinds)
    if not number:
        yield UNSPREAD
        return

    def parts(rest: int, room: int) -> Iterator[tuple[int, ...]]:
        if room and rest:
            yield (rest,)
            for here in range(1, rest):
                for others in parts(rest - here, room - 1):
                    yield (here, *others)

    # the first chunk may have the embedding alone
    for layers in (*parts(number, stages), *((0, *others) for others in parts(number, stages - 1))):
        for last in range(len(layers) - 1, virtual * stages):
            found = First(layers, last)
            if any(sum(found.of(s, stages)[:1]) + (s == 0) < found.of(s, stages)[1] for s in range(stages)):
                break
            yield found


def interleaved(kinds: IntArray, most: int, stage: int, stages: int, virtual: int, first: First) -> Shapes:
    """Return the shapes of a stage of several chunks, whose layers of the first kind are given."""
    count, (layers, begun) = len(kinds), first.of(stage, stages)
    ends = (stage == 0), (stage == stages - 1)
    least = layers + ends[0] + max(virtual - begun, ends[1])
    if begun == virtual and stage != first.last % stages:
        most = min(most, least)
    sizes = np.arange(least, most + 1)
    counts = np.zeros((len(sizes), int(kinds.max()) + 1), dtype=np.int64)
    counts[:, kinds[0]], counts[:, kinds[-1]] = ends
    counts[:, kinds[1]] += layers
    counts[:, kinds[-2]] += sizes - layers - sum(ends)
    of = np.full((count + 1, most + 1), len(sizes))
    of[:, sizes] = np.arange(len(sizes))
    return Shapes(counts, of)


def chunks(sizes: Sequence[int], virtual: int, first: First = UNSPREAD) -> IntArray:
    """Return the blocks of each chunk of stages with so many blocks, int32 (virtual p,), as even as can be."""
    return np.stack([column(n, s, len(sizes), virtual, first) for s, n in enumerate(sizes)], axis=1).ravel()


def column(size: int, stage: int, stages: int, virtual: int, first: First = UNSPREAD) -> IntArray:
    """Return the blocks of each chunk of a stage, int32 (virtual,)."""
    layers, begun = first.of(stage, stages)
    begins, later = layers + (stage == 0), virtual - begun
    early = _even(begins, begun)
    if stage == first.last % stages:  # this chunk may have others too
        more = min(size - begins - later, max(0, -(-size // virtual) - int(early[-1])) if later else size)
        early[-1] += more
        begins += more
    return np.concatenate([early, _even(size - begins, later)])


def _even(number: int, parts: int) -> IntArray:
    return (number + np.arange(parts, dtype=np.int32)) // parts
