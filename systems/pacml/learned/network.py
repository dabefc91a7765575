"""The network: scores of a decision's rows, which sum up the messages of the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gangplan.instances import OpGraph
from gangplan.learned.policy.perceptron import Weights, weights_of
from gangplan.learned.training.perceptron import Perceptron

from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .recipe import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""
NODE = 16
"""Numbers of an op, as PAC-ML was published."""


class Network(Perceptron):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves."""

    def __init__(self, width: int = 64, variant: Variant = "all", graphs: Any = None) -> None:
        reads = variant == "op-graph"
        super().__init__(WIDTH + (NODE if reads else 0), width)
        self.variant, self.graphs = variant, graphs
        if reads:
            from ..published.network import MeanPool
            from ..published.observe import NODE as OP

            self.rounds = nn.ModuleList([MeanPool(len(OP), NODE), MeanPool(NODE, NODE)])
        seen = torch.ones(WIDTH)
        if variant == "totals":
            seen[:-_TOTALS] = 0.0
        if variant == "no-history":
            seen[-_TOTALS : -_TOTALS + _HISTORY] = 0.0
        self.register_buffer("seen", seen)

    def forward(self, rows: Tensor) -> Tensor:
        """Return a score a row, (A,): features, then the vector of the op graph, or which of `graphs` it is."""
        own, kind = rows[:, :WIDTH] * self.seen, rows[:, WIDTH:]
        return super().forward(torch.cat([own, kind if self.graphs is None else kind @ self.encode(self.graphs)], 1))

    @staticmethod
    def batch(graphs: Sequence[OpGraph]) -> Any:
        """Return op graphs as one batch."""
        from ..published.network import batch_of
        from ..published.observe import op_rows

        return batch_of([op_rows(graph) for graph in graphs])

    def encode(self, graphs: Any) -> Tensor:
        """Return a vector a graph of a batch, (graphs, NODE)."""
        from ..published.network import encode

        return encode(self.rounds, graphs)

    def compiled(self) -> Weights:
        """Return the weights as arrays, those of what is not seen 0; a row a graph follows those of the features."""
        own, kind = self.rows.weight[:, :WIDTH] * self.seen, self.rows.weight[:, WIDTH:]
        told = kind.T[:0] if self.graphs is None else self.encode(self.graphs) @ kind.T
        return weights_of(self, torch.cat([own.T, told]))
