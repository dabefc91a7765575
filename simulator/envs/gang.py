"""A gang being placed, node by node: which nodes may take the next part of it, so that all of it can be placed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..engine.jobs import Long, Rows
from ..engine.state import ClusterState
from ..fit import SLACK


class Gang:
    """The GPUs of a job that starts when all of them have a place.

    A node takes as many as it can hold and are left. Consolidated, a job no larger than the largest node goes on a
    single node and a larger one on whole free nodes, as by default in the engine. Whatever eligible node is taken next,
    the rest can be placed too: what the others can take does not change, and it was enough.

    Args:
        single: a node takes one GPU at a time; not if jobs are consolidated.

    Attributes:
        left: GPUs that have no place yet.
        staged: GPUs set aside on each node, int64 (m,).
    """

    def __init__(self, state: ClusterState, job: int, degree: int, single: bool = False) -> None:
        self._s, self.job, self.degree, self.left, self._single = state, job, degree, degree, single
        m = len(state.free)
        self.staged: Long = np.zeros(m, dtype=np.int64)
        self._order: list[int] = []
        self._may = state.ok[state.kind[job]]
        self._able = self._count()
        self._whole = state.whole[:, 0].astype(np.int64)
        self._many = state.consolidate and degree > int(self._whole.max())
        self._idle = state.free[:, 0] == state.whole[:, 0]

    def fits(self) -> bool:
        """Return whether all of it can be placed."""
        s, able, left = self._s, self._able, self.left
        if not s.consolidate:
            return int(able.sum()) >= left
        if not self._many:
            return bool((able >= left).any())
        able = np.where(self._idle, able, 0)
        full = able == self._whole
        rest = left - int(able[full].sum())
        return rest <= 0 or bool((able[~full] >= rest).any())

    def eligible(self) -> NDArray[np.bool_]:
        """Return which nodes may take the next part, bool (m,); of meaning while it `fits`."""
        if not self._s.consolidate:
            return np.asarray(self._able > 0)
        if not self._many:
            return np.asarray(self._able >= self.left)
        return np.asarray(self._idle & (self._able > 0) & (self._able >= np.minimum(self.left, self._whole)))

    def take(self, node: int) -> None:
        """Place one GPU, or as many as possible, on an eligible node."""
        gpus = 1 if self._single else min(self.left, int(self._able[node]))
        if not self.staged[node]:
            self._order.append(node)
        self.staged[node] += gpus
        self.left -= gpus
        self._able[node] = self._able[node] - gpus if self._single else 0

    def rows(self) -> Rows:
        """Return where it is."""
        return Rows.whole([(node, int(self.staged[node])) for node in self._order])

    def _count(self) -> Long:
        free, unit = self._s.free, self._s.unit[self.job]
        able = free[:, 0].astype(np.int64)
        for r in range(1, free.shape[1]):
            if unit[r] > 0:
                able = np.minimum(able, np.floor(free[:, r] / unit[r] * (1 + SLACK) + SLACK).astype(np.int64))
        return np.asarray(np.where(self._may, np.maximum(able, 0), 0))
