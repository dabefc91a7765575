"""The network: scores of a decision's rows, which sum up the messages of the blocks; in torch and in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .features import WIDTH


class Weights(NamedTuple):
    """Weights of a network of width w.

    Attributes:
        first: of the features of a row, float32 (features, w).
        first_bias: float32 (w,).
        hidden: of the first layer's units, float32 (w, w).
        hidden_bias: float32 (w,).
        last: float32 (w,).
    """

    first: NDArray[np.float32]
    first_bias: NDArray[np.float32]
    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]
    last: NDArray[np.float32]

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the score of each row, features of a decision."""
        x = np.maximum(rows @ self.first + self.first_bias, 0)
        return np.asarray(np.maximum(x @ self.hidden + self.hidden_bias, 0) @ self.last)


class BlockNetwork(nn.Module):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves.

    Attributes:
        seen: 0 for features that are not, in weights of version 0.2 that were compared with.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.width = width
        self.rows = nn.Linear(WIDTH, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)
        self.register_buffer("seen", torch.ones(WIDTH))

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,)."""
        return self.out(torch.relu(self.hidden(torch.relu(self.rows(rows * self.seen)))))[:, 0]

    def weights(self) -> Weights:
        """Return the weights as arrays, those of what is not seen 0."""
        first = (self.rows.weight * self.seen).T
        parts = first, self.rows.bias, self.hidden.weight.T, self.hidden.bias, self.out.weight[0]
        return Weights(*(np.array(x.detach().numpy(), dtype=np.float32, order="C") for x in parts))
