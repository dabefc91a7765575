"""The network: scores of a decision's rows, which sum up the messages of the blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gangplan.learned.policy.perceptron import Weights, weights_of

from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .recipe import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""


class Network(nn.Module):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves.

    Args:
        width: of the hidden layers.
        variant: what it sees.
    """

    def __init__(self, width: int = 64, variant: Variant = "all") -> None:
        super().__init__()
        self.variant = variant
        self.rows = nn.Linear(WIDTH, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)
        seen = torch.ones(WIDTH)
        if variant == "totals":
            seen[:-_TOTALS] = 0.0
        if variant == "no-history":
            seen[-_TOTALS : -_TOTALS + _HISTORY] = 0.0
        self.register_buffer("seen", seen)

    @property
    def width(self) -> int:
        """Return the width of the hidden layers."""
        return int(self.out.in_features)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,), from features (A, WIDTH)."""
        x = torch.relu(self.rows(rows * self.seen))
        found: Tensor = self.out(torch.relu(self.hidden(x)))[:, 0]
        return found


def compiled(network: Network) -> Weights:
    """Return the weights as arrays."""
    with torch.no_grad():
        return weights_of(network, (network.rows.weight * network.seen).T)
