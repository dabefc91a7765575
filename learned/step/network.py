"""The network: a graph in, a score for each setting in the book out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..gnn import Batch, GraphNetwork, Schema
from ..gnn.network import mlp
from .dials import DIALS


class StepNetwork(nn.Module):
    """Scores the settings of the dials by what the ops have told the problem's node.

    Args:
        schema: of the encodings.
        width: of the vectors.
        rounds: of messages; with none it sees the problem's own features alone.
        book: how many settings there are.
    """

    book: Tensor

    def __init__(self, schema: Schema, width: int = 48, rounds: int = 3, book: int = 64) -> None:
        super().__init__()
        self.body = GraphNetwork(schema, width, rounds)
        self.head = mlp([width, 2 * width, book])
        self.register_buffer("book", torch.zeros(book, len(DIALS), dtype=torch.float64))

    def calm(self, factor: float) -> None:
        """Multiply all scores by a factor."""
        last: Any = self.head[-1]
        with torch.no_grad():
            last.weight.mul_(factor)
            last.bias.mul_(factor)

    def forward(self, batch: Batch) -> Tensor:
        """Return scores, (problems, book)."""
        found: Tensor = self.head(self.body(batch)["problem"])
        return found
