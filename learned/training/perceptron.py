"""A network of two hidden layers that scores the rows of a decision; compiled code runs it without torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..policy.perceptron import Weights, weights_of


class Perceptron(nn.Module):
    """Scores rows one by one.

    Args:
        features: of a row.
        width: of the hidden layers.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Linear(features, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)

    @property
    def width(self) -> int:
        """Return the width of the hidden layers."""
        return int(self.out.in_features)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,), of features (A, features)."""
        x = torch.relu(self.rows(rows))
        scores: Tensor = self.out(torch.relu(self.hidden(x)))[:, 0]
        return scores

    def compiled(self) -> Weights:
        """Return the weights as arrays, see `gangplan.learned.policy.perceptron.forward`."""
        return weights_of(self, self.rows.weight.T)
