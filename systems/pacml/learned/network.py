"""The network: scores of a decision's rows, which sum up the messages of the blocks; in torch and in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gangplan.instances import OpGraph

from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .recipe import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""
NODE = 16
"""Numbers of an op, as PAC-ML was published."""


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
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves."""

    def __init__(self, width: int = 64, variant: Variant = "all", graphs: Any = None) -> None:
        super().__init__()
        self.width, self.variant, self.graphs = width, variant, graphs
        self.rows = nn.Linear(WIDTH + (NODE if variant == "op-graph" else 0), width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)
        if variant == "op-graph":
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
        told = kind if self.graphs is None else kind @ self.encode(self.graphs)
        x = torch.relu(self.rows(torch.cat([own, told], 1)))
        return self.out(torch.relu(self.hidden(x)))[:, 0]

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

    def weights(self) -> Weights:
        """Return the weights as arrays, those of what is not seen 0; a row a graph follows those of the features."""
        own, kind = self.rows.weight[:, :WIDTH] * self.seen, self.rows.weight[:, WIDTH:]
        told = kind.T[:0] if self.graphs is None else self.encode(self.graphs) @ kind.T
        parts = torch.cat([own.T, told]), self.rows.bias, self.hidden.weight.T, self.hidden.bias, self.out.weight[0]
        return Weights(*(np.array(x.detach().numpy(), dtype=np.float32, order="C") for x in parts))
