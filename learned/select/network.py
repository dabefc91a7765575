"""The network: one score a candidate, from what is seen of it and of the state."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from .episodes import Weights
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
    with torch.no_grad():
        found = (
            network.rows.weight.T, network.rows.bias, network.hidden.weight.T, network.hidden.bias,
            network.out.weight[0],
        )  # fmt: skip
        return Weights(*(np.array(x.numpy(), dtype=np.float32, order="C") for x in found))
