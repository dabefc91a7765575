"""The network: scores of a decision's rows, which sum up the messages of the blocks; in torch and in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.solvers.compiled.kernel import Singles, Singles2, inner

from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .recipe import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""


class Weights(NamedTuple):
    """Weights of a network of width w.

    Attributes:
        first: of the features of a row, float32 (features, w).
        first_bias: float32 (w,).
        hidden: of the first layer's units, float32 (w, w).
        hidden_bias: float32 (w,).
        last: float32 (w,).
    """

    first: Singles2
    first_bias: Singles
    hidden: Singles2
    hidden_bias: Singles
    last: Singles


class Network(nn.Module):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves."""

    def __init__(self, width: int = 64, variant: Variant = "all") -> None:
        super().__init__()
        self.width, self.variant = width, variant
        self.rows = nn.Linear(WIDTH, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)
        seen = torch.ones(WIDTH)
        if variant == "totals":
            seen[:-_TOTALS] = 0.0
        if variant == "no-history":
            seen[-_TOTALS : -_TOTALS + _HISTORY] = 0.0
        self.register_buffer("seen", seen)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,), from features (A, WIDTH)."""
        x = torch.relu(self.rows(rows * self.seen))
        scores: Tensor = self.out(torch.relu(self.hidden(x)))[:, 0]
        return scores

    def compiled(self) -> Weights:
        """Return the weights as arrays, those of what is not seen 0, see `forward`."""
        first, hidden = (self.rows.weight * self.seen).T, self.hidden
        parts = first, self.rows.bias, hidden.weight.T, hidden.bias, self.out.weight[0]
        return Weights(*(np.array(x.detach().numpy(), dtype=np.float32, order="C") for x in parts))


@inner
def forward(rows: Singles2, k: int, weights: Weights, out: Singles) -> None:
    """Write the scores of the first k rows, features of a decision."""
    zero = np.float32(0)
    x = np.dot(rows[:k], weights.first)
    for i in range(k):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + weights.first_bias[j], zero)
    y = np.dot(x, weights.hidden)
    for i in range(k):
        total = zero
        for j in range(y.shape[1]):
            total += max(y[i, j] + weights.hidden_bias[j], zero) * weights.last[j]
        out[i] = total
