"""TopDRL's policy: whenever a job in sight fits, the network says which one starts, or that all wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice
from gangplan.learned.policy.network import NetworkPolicy
from gangplan.learned.training.checkpoint import Tensors
from gangplan.solvers.compiled.kernel import Ints

from ..allocate import ALLOCATORS, allocate
from ..arrays import ARRIVED, RUNNING, WAITING, Cluster, Jobs, State, advance, start
from ..batch import JobRows, StateRows, alone
from ..image import SCALARS, draw
from .recipe import NAME, Settings

if TYPE_CHECKING:
    from .network import Network


Halves = NDArray[np.float16]
"""Images are of 0 and 1, and many are kept."""


def observe(jobs: JobRows, state: StateRows, size: Ints, settings: Settings, step: float | None = None) -> Halves:
    """Return what is seen of B states, float16 (B, rows GPUs + slots rows widest + scalars).

    Args:
        step: seconds of a row, by default that of training.
    """
    b, rows, slots = len(size), settings.rows, settings.slots
    parts = [
        np.zeros(shape, dtype=np.float32)
        for shape in ((b, rows, settings.gpus), (b, slots, rows, settings.widest), (b, len(SCALARS)))
    ]
    draw(jobs, state, size, step or settings.step, settings.backlog, *parts)
    return np.concatenate([x.reshape(b, -1) for x in parts], axis=1, dtype=np.float16, casting="same_kind")


def set_aside(seen: Halves, aside: NDArray[np.bool_], settings: Settings) -> Halves:
    """Mark the GPUs that are set aside for the first job, bool (B, GPUs), and let the job shrink by them."""
    b, rows, cells = len(seen), settings.rows, settings.rows * settings.gpus
    cluster, job = seen[:, :cells].reshape(b, rows, -1), seen[:, cells : cells + rows * settings.widest]
    cluster[:] = np.where(aside[:, None, :], -1.0, cluster)
    block = job.reshape(b, rows, -1)
    left = block[:, 0].sum(axis=1) - aside.sum(axis=1)
    block *= np.arange(settings.widest) < left[:, None, None]
    seen[:, :cells], seen[:, cells : cells + rows * settings.widest] = cluster.reshape(b, -1), block.reshape(b, -1)
    return seen


class TopdrlPolicy(NetworkPolicy):
    """A policy of `gangplan.systems.topdrl.simulate` that takes the action of the best score.

    Args:
        network: scores the slots and to wait, or, if it `decides` GPUs, those of the cluster.
        allocator: of the jobs that it picks, by default that of training.
        step: seconds of a row of its images, by default that of training: for jobs of another scale.
    """

    recipe, config = NAME, Settings

    def __init__(
        self, network: Network, settings: Settings, *, allocator: str | None = None, step: float | None = None
    ) -> None:
        name = allocator or settings.allocator
        require_choice(name, "allocator", ALLOCATORS)
        super().__init__(network, settings)
        self.step, self.allocator = step, ALLOCATORS.index(name)

    @classmethod
    def build(cls, settings: Settings, tensors: Tensors) -> Network:
        """Return the network of the settings."""
        from .network import Network

        return Network(settings)

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish.

        Raises:
            InstanceError: if the cluster has not as many GPUs as the one of training.
        """
        if len(state.holder) != self.settings.gpus:
            words = f"has {len(state.holder)} GPUs, and not the {self.settings.gpus} of training"
            raise InstanceError("cluster", words)
        take = np.zeros_like(state.free)
        while True:
            mask = self._mask(jobs, state)
            if mask[:-1].any():
                at = self._decide(jobs, cluster, state, mask, take)
                if at < self.settings.slots:
                    start(jobs, cluster, state, at, take)
                    continue
            if not advance(jobs, cluster, state):
                return

    def _mask(self, jobs: Jobs, state: State) -> NDArray[np.bool_]:
        """Return which jobs in sight fit, and whether waiting is possible, bool (slots + 1,)."""
        mask = np.zeros(self.settings.slots + 1, dtype=bool)
        shown = state.queue[: min(state.count[WAITING], self.settings.slots)]
        mask[: len(shown)] = jobs.gpus[shown] <= state.free.sum()
        mask[-1] = state.count[RUNNING] > 0 or state.count[ARRIVED] < len(jobs.submit)
        return mask

    def _decide(self, jobs: Jobs, cluster: Cluster, state: State, mask: NDArray[np.bool_], take: Any) -> int:
        """Return the slot whose job starts, and write what it takes; or the number of slots, to wait."""
        rows = alone(jobs, state)
        if self.settings.decides == "job":
            scores = self.scores(observe(*rows, self.settings, self.step))[0]
            at = int(np.where(mask, scores, -np.inf).argmax())
            if at < self.settings.slots:
                allocate(self.allocator, int(jobs.gpus[state.queue[at]]), cluster, state.free, take)
            return at
        aside = np.zeros((1, self.settings.gpus), dtype=bool)
        for _ in range(int(jobs.gpus[state.queue[0]])):
            seen = set_aside(observe(*rows, self.settings, self.step), aside, self.settings)
            idle = (state.holder < 0) & ~aside[0]
            aside[0, np.where(idle, self.scores(seen)[0], -np.inf).argmax()] = True
        take[:] = np.add.reduceat(aside[0], cluster.first[:-1], dtype=np.int64)
        return 0
