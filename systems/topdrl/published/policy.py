"""TopDRL's policy: whenever a job in sight fits, the network says which one starts, or that all wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice
from gangplan.learned.policy.network import NetworkPolicy
from gangplan.simulator.gangs.allocate import ALLOCATORS, allocate
from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.step import advance, start

from ..image import SCALARS
from ..kernels import draw
from .recipe import NAME, TopdrlSettings

PATCH = 5
"""Rows that the first convolution takes together."""
FEW = 16
"""Outputs of the branch of the numbers."""


class ImageNetwork(nn.Module):
    """Scores actions by images (Ayadi et al., JPDC 204, 2025; the sizes of layers are ours).

    The image of the cluster has a column a GPU, that of the queue a block of columns a slot, see
    `gangplan.systems.topdrl.image`. Each has convolutions of its own, and the numbers have a layer; what they find
    goes through a common one. The score of a slot is made of what the convolutions find in its block and of what is
    common, by weights that all slots share.

    Args:
        outputs: how many scores, by default one an action.
    """

    def __init__(self, settings: TopdrlSettings, outputs: int | None = None) -> None:
        super().__init__()
        self._of, width, node = settings, settings.width, settings.cluster[2]
        self.queue, self.queue_all = self._pieces(settings.widest), self._whole(settings.slots)
        self.cluster, self.cluster_all = self._pieces(node), self._whole(settings.gpus // node)
        self.numbers = nn.Sequential(nn.Linear(len(SCALARS), FEW), nn.ReLU())
        self.common = nn.Sequential(nn.Linear(2 * width + FEW, width), nn.ReLU())
        self._shares = outputs is None and settings.decides == "job"
        if self._shares:
            self.slot, self.context = nn.Linear(settings.channels, width // 2), nn.Linear(width, width // 2)
            self.score = nn.Linear(width // 2, 1)
        self.last = nn.Linear(width, 1 if self._shares else settings.actions if outputs is None else outputs)
        with torch.no_grad():
            self.last.weight.mul_(0.1)  # all actions are about as likely at first

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores, (B, outputs).

        Args:
            rows: what `gangplan.systems.topdrl.published.policy.observe` returns, (B, width).
        """
        of, b = self._of, len(rows)
        flat = rows.float().split([of.rows * of.gpus, of.slots * of.rows * of.widest, len(SCALARS)], dim=1)
        cluster = flat[0].view(b, 1, of.rows, of.gpus)
        queue = flat[1].view(b, of.slots, of.rows, of.widest).transpose(1, 2).reshape(b, 1, of.rows, -1)
        blocks = self.queue(queue)
        parts = [self.cluster_all(self.cluster(cluster)), self.queue_all(blocks), self.numbers(flat[2])]
        common = self.common(torch.cat(parts, dim=1))
        last: Tensor = self.last(common)
        if not self._shares:
            return last
        found = self.slot(blocks[:, :, 0].transpose(1, 2)) + self.context(common)[:, None]
        return torch.cat([self.score(found.relu())[..., 0], last], dim=1)

    def _pieces(self, block: int) -> nn.Sequential:
        """Return what reads an image block by block: pieces of each, then each as a whole."""
        channels, deep = self._of.channels, self._of.rows // PATCH
        first = nn.Conv2d(1, channels, (PATCH, block), stride=(PATCH, block))
        return nn.Sequential(first, nn.ReLU(), nn.Conv2d(channels, channels, (deep, 1)), nn.ReLU())

    def _whole(self, blocks: int) -> nn.Sequential:
        """Return what reads all blocks of an image."""
        return nn.Sequential(nn.Flatten(), nn.Linear(self._of.channels * blocks, self._of.width), nn.ReLU())


class ImageCritic(nn.Module):
    """A value a state, by a network of the same form."""

    def __init__(self, settings: TopdrlSettings) -> None:
        super().__init__()
        self.network = ImageNetwork(settings, 1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the values, (B,)."""
        return self.network(rows)[:, 0]


Halves = NDArray[np.float16]
"""Images are of 0 and 1, and many are kept."""


def observe(episodes: list[tuple[Jobs, State]], settings: TopdrlSettings, step: float | None = None) -> Halves:
    """Return what is seen of B states, float16 (B, rows GPUs + slots rows widest + scalars).

    Args:
        step: seconds of a row, by default that of training.
    """
    b, rows, slots = len(episodes), settings.rows, settings.slots
    parts = [
        np.zeros(shape, dtype=np.float32)
        for shape in ((b, rows, settings.gpus), (b, slots, rows, settings.widest), (b, len(SCALARS)))
    ]
    draw(episodes, step or settings.step, settings.backlog, *parts)
    return np.concatenate([x.reshape(b, -1) for x in parts], axis=1, dtype=np.float16, casting="same_kind")


def set_aside(seen: Halves, aside: NDArray[np.bool_], settings: TopdrlSettings) -> Halves:
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

    recipe, config, make = NAME, TopdrlSettings, ImageNetwork

    def __init__(
        self,
        network: ImageNetwork,
        settings: TopdrlSettings,
        *,
        allocator: str | None = None,
        step: float | None = None,
    ) -> None:
        name = allocator or settings.allocator
        require_choice(name, "allocator", ALLOCATORS)
        super().__init__(network, settings)
        self.step, self.allocator = step, ALLOCATORS.index(name)

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
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

    def _decide(self, jobs: Jobs, cluster: GpuRacks, state: State, mask: NDArray[np.bool_], take: Any) -> int:
        """Return the slot whose job starts, and write what it takes; or the number of slots, to wait."""
        alone = [(jobs, state)]
        if self.settings.decides == "job":
            scores = self.scores(observe(alone, self.settings, self.step))[0]
            at = int(np.where(mask, scores, -np.inf).argmax())
            if at < self.settings.slots:
                allocate(self.allocator, int(jobs.gpus[state.queue[at]]), cluster, state.free, take)
            return at
        aside = np.zeros((1, self.settings.gpus), dtype=bool)
        for _ in range(int(jobs.gpus[state.queue[0]])):
            seen = set_aside(observe(alone, self.settings, self.step), aside, self.settings)
            idle = (state.holder < 0) & ~aside[0]
            aside[0, np.where(idle, self.scores(seen)[0], -np.inf).argmax()] = True
        take[:] = np.add.reduceat(aside[0], cluster.first[:-1], dtype=np.int64)
        return 0
