"""The network: a vector a group by message passing, and from it a few scores, each of which makes a plan."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..encode.encoding import Encoding
from ..gnn import Batch, GraphNetwork, mlp, schema_of

_BEGIN = 0.05
"""Spread of the last layer's weights at the start: heads that were alike would stay alike."""


class Scorer(nn.Module):
    """Scores groups: how much later each is to come than in PipeDream's order, as a share of the whole order.

    Args:
        like: any encoding, for its columns.
        width: of the vectors.
        rounds: of messages; with none of them it is an MLP over a group's own features.
        heads: vectors of scores; good plans differ, and what is between two of them need not be good.
    """

    def __init__(self, like: Encoding, width: int, rounds: int, heads: int) -> None:
        super().__init__()
        self.messages = rounds > 0
        self.graph = GraphNetwork(schema_of(like), width, rounds)
        self.head = mlp([2 * width, width, heads])
        last = self.head[-1]
        nn.init.normal_(last.weight, std=_BEGIN)
        nn.init.zeros_(last.bias)

    def forward(self, batch: Batch) -> Tensor:
        """Return the scores of each group, (groups, heads)."""
        hidden = self.graph(batch)
        about = hidden["problem"][batch.of["groups"]]
        found: Tensor = self.head(torch.cat([hidden["groups"], about], dim=1))
        return found
