"""The network: convolutions over images of the cluster and of the queue, and a score an action."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..image import SCALARS
from .recipe import Settings

PATCH = 5
"""Rows that the first convolution takes together."""
FEW = 16
"""Outputs of the branch of the numbers."""


class Network(nn.Module):
    """Scores actions by images (Ayadi et al., JPDC 204, 2025; the sizes of layers are ours).

    The image of the cluster has a column a GPU, that of the queue a block of columns a slot, see
    `gangplan.systems.topdrl.image`. Each has convolutions of its own, and the numbers have a layer; what they find
    goes through a common one. With one branch the images stand side by side, and a block for the backlog. The score of
    a slot is made of what the convolutions find in its block and of what is common, by weights that all slots share.

    Args:
        outputs: how many scores, by default one an action.
    """

    def __init__(self, settings: Settings, outputs: int | None = None) -> None:
        super().__init__()
        self._of, width, node = settings, settings.width, settings.cluster[2]
        wide, slots, several = settings.widest, settings.slots, settings.branches == "several"
        self._blocks = -(-settings.gpus // wide)  # of the cluster, where it stands beside the queue
        self.queue = self._pieces(wide)
        self.queue_all = self._whole(slots if several else self._blocks + slots + 1)
        if several:
            self.cluster, self.cluster_all = self._pieces(node), self._whole(settings.gpus // node)
            self.numbers = nn.Sequential(nn.Linear(len(SCALARS), FEW), nn.ReLU())
        self.common = nn.Sequential(nn.Linear(2 * width + FEW if several else width, width), nn.ReLU())
        self._shares = settings.head == "shared" and outputs is None and settings.decides == "job"
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
        if of.branches == "several":
            blocks = self.queue(queue)
            parts = [self.cluster_all(self.cluster(cluster)), self.queue_all(blocks), self.numbers(flat[2])]
            common = self.common(torch.cat(parts, dim=1))
        else:
            row = torch.arange(of.rows, device=rows.device)[:, None]
            backlog = (flat[2][:, 0, None, None] * of.rows > row)[:, None].float()
            pad = nn.functional.pad
            cluster, backlog = pad(cluster, (0, -of.gpus % of.widest)), pad(backlog, (0, of.widest - 1))
            blocks = self.queue(torch.cat([cluster, queue, backlog], dim=3))
            common = self.common(self.queue_all(blocks))
            blocks = blocks[..., self._blocks : -1]
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


class Critic(nn.Module):
    """A value a state, by a network of the same form."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.network = Network(settings, 1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the values, (B,)."""
        values: Tensor = self.network(rows)[:, 0]
        return values
