"""The network: scores of a decision's rows, which sum up the messages of the blocks."""

from __future__ import annotations

import torch
from torch import Tensor

from gangplan.learned.policy.perceptron import Weights, weights_of
from gangplan.learned.training.perceptron import Perceptron

from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .recipe import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""


class Network(Perceptron):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves."""

    def __init__(self, width: int = 64, variant: Variant = "all") -> None:
        super().__init__(WIDTH, width)
        self.variant = variant
        seen = torch.ones(WIDTH)
        if variant == "totals":
            seen[:-_TOTALS] = 0.0
        if variant == "no-history":
            seen[-_TOTALS : -_TOTALS + _HISTORY] = 0.0
        self.register_buffer("seen", seen)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,), from features (A, WIDTH)."""
        return super().forward(rows * self.seen)

    def compiled(self) -> Weights:
        """Return the weights as arrays, those of what is not seen 0."""
        return weights_of(self, (self.rows.weight * self.seen).T)
