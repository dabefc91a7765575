"""Packing by alignment, as Tetris."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.workload import Workload

from ..rows import Long, Rows
from ..view import View


class Tetris:
    """Start the job, on the node, whose needs align best with what is free, unless another has much less left to do.

    Grandl et al., "Multi-resource packing for cluster schedulers" (SIGCOMM 2014): the score is a - e p, with the
    alignment a (dot product of needs and what a node has free, each over the node's capacity), the work p that the job
    has left (GPU seconds), and e = m mean(a) / mean(p) over the queue. It needs to know durations.

    Args:
        mix: m; 0 packs only.
    """

    def __init__(self, mix: float = 1.0) -> None:
        require_number(mix, "mix")
        self.mix = mix
        self._of: Workload | None = None
        self._kind: Long = np.zeros(0, dtype=np.int64)
        self._asks: FloatArray = np.zeros((0, 3))

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by score."""
        if self._of is not view.workload:
            self._learn(view.workload)
        kinds = np.unique(self._kind[jobs])
        best = np.zeros(len(self._asks))
        best[kinds] = [self._aligned(view, self._asks[kind]).max(initial=0.0) for kind in kinds.tolist()]
        align, work = best[self._kind[jobs]], view.left(jobs) * self._asks[self._kind[jobs], 0]
        mean = float(work.mean())
        return np.asarray(work * (self.mix * float(align.mean()) / mean if mean else 0.0) - align)

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Take the node that aligns best; a gang that no single node holds goes where it does by default.

        So does every job where GPUs are shared: there the score only says who is first.
        """
        if view.shared:
            return view.find(job, degree)
        if self._of is not view.workload:
            self._learn(view.workload)
        score = self._aligned(view, self._asks[self._kind[job]])
        node = int(np.argmax(score))
        return Rows.whole([(node, degree)]) if score[node] > 0 else view.find(job, degree)

    def _aligned(self, view: View, asks: FloatArray) -> FloatArray:
        """Return the alignment with each node, 0 where the job does not fit, (m,)."""
        free, fleet = view.spare, view.fleet
        whole = np.stack([fleet.gpus, fleet.cpu, fleet.memory], axis=1)
        fits = (free >= asks).all(axis=1)
        return np.asarray((free / np.maximum(whole, 1e-300) * asks / np.maximum(whole, 1e-300)).sum(axis=1) * fits)

    def _learn(self, work: Workload) -> None:
        self._of = work
        needs = np.stack([work.gpus * np.asarray(work.share), np.asarray(work.cpu), np.asarray(work.memory)], axis=1)
        self._asks, kind = np.unique(needs, axis=0, return_inverse=True)
        self._kind = kind.ravel().astype(np.int64)
