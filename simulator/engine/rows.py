"""Rows of a job: which GPUs of which nodes it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Long = NDArray[np.int64]


class Rows(NamedTuple):
    """Where a job runs; k rows.

    Attributes:
        node: int64 (k,).
        gpus: how many GPUs it holds there, int64 (k,).
        gpu: which one, int64 (k,); -1 where GPUs are not told apart.
    """

    node: Long
    gpus: Long
    gpu: Long

    @classmethod
    def whole(cls, pairs: Iterable[tuple[int, int]]) -> Rows:
        """Return the rows of (node, how many GPUs)."""
        node, gpus = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        return cls(node, gpus, np.full(len(node), -1))

    @classmethod
    def told_apart(cls, pairs: Iterable[tuple[int, int]]) -> Rows:
        """Return the rows of (node, which GPU of it)."""
        node, gpu = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        return cls(node, np.ones(len(node), dtype=np.int64), gpu)

    def same(self, other: Rows) -> bool:
        """Return whether these are the same GPUs."""
        return all(np.array_equal(a, b) for a, b in zip(self, other, strict=True))
