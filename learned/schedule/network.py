"""The network: by how many places a job moves in the list, and what its options are worth."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..encode.encoding import Encoding
from ..gnn import Batch, GraphNetwork, Schema, collate, mlp

MOST = 3.0
"""Scores are pressed below this, so that no input can make one job leave all others behind."""


class Network(nn.Module):
    """Scores jobs and options; a new one scores all of them 0, which leaves the base schedule as it is.

    Args:
        schema: of the graphs, see `gangplan.learned.schedule.graph`.
        width, rounds: of the messages.
    """

    def __init__(self, schema: Schema, width: int = 32, rounds: int = 2) -> None:
        super().__init__()
        self.width, self.rounds = width, rounds
        self.body = GraphNetwork(schema, width, rounds)
        self.job = mlp([width, width, 2])
        self.option = mlp([2 * width, width, 1])
        for head in (self.job, self.option):
            nn.init.zeros_(head[-1].weight)
            nn.init.zeros_(head[-1].bias)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return (moves (n,), worth (o,), outs (n,)) of all jobs and options of a batch."""
        hidden = self.body(batch)
        jobs, options = hidden["jobs"], hidden["options"]
        owner = batch.edges["options", "of", "jobs"][1]
        of_job = self.job(jobs)
        of_option = self.option(torch.cat([options, jobs[owner]], dim=1))[:, 0]
        return _pressed(of_job[:, 0]), _pressed(of_option), _pressed(of_job[:, 1])


def scores_of(network: Network, graphs: Sequence[Encoding]) -> tuple[Tensor, Tensor, Tensor, Batch]:
    """Return the scores of some graphs, and their batch."""
    batch = collate(graphs)
    return (*network(batch), batch)


def _pressed(x: Tensor) -> Tensor:
    return MOST * torch.tanh(x / MOST)
