"""The network: one score a candidate, from what is seen of it and of the state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gangplan.learned.policy.perceptron import Weights, weights_of

from .features import WIDTH


class Network(nn.Module):
    """Scores rows by two hidden layers.

    Args:
        width: of the hidden layers.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.rows = nn.Linear(WIDTH, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)

    @property
    def width(self) -> int:
        """Return the width of the hidden layers."""
        return int(self.out.in_features)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,), of features (A, WIDTH)."""
        x = torch.relu(self.rows(rows))
        found: Tensor = self.out(torch.relu(self.hidden(x)))[:, 0]
        return found


def compiled(network: Network) -> Weights:
    """Return the weights as arrays."""
    return weights_of(network, network.rows.weight.T)
