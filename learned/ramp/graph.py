"""A job's op graph as numbers: one vector a job, by message passing over its ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, global_max_pool, global_mean_pool

from gangplan.instances import OpGraph

from .ops import OP, read

EMBEDDING = 8
"""Numbers that a job comes to."""


class Graphs(NamedTuple):
    """The ops of k jobs in one graph, see `gangplan.learned.ramp.ops.Ops`, as tensors; `count` is k."""

    x: Tensor
    edges: Tensor
    job: Tensor
    count: int  # type: ignore[assignment]  # a tuple counts otherwise


def encode(graphs: Sequence[OpGraph]) -> Graphs:
    """Return the op graphs of some jobs, unsplit."""
    x, edges, job = (torch.from_numpy(part) for part in read(graphs))
    return Graphs(x, edges, job, len(graphs))


class JobEncoder(nn.Module):
    """Two rounds of mean messages (GraphSAGE, Hamilton et al., NeurIPS 2017), then mean and maximum over the ops.

    Args:
        width: of an op's vector.
    """

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = SAGEConv(len(OP), width)
        self.second = SAGEConv(width, width)
        self.out = nn.Linear(2 * width, EMBEDDING)

    def forward(self, graphs: Graphs) -> Tensor:
        """Return the vectors of the jobs, (k, EMBEDDING), within -1 and 1."""
        x, edges, job = (part.to(self.out.weight.device) for part in graphs[:3])
        x = torch.relu(self.first(x, edges))
        x = torch.relu(self.second(x, edges))
        pools = [pool(x, job, graphs.count) for pool in (global_mean_pool, global_max_pool)]
        return torch.tanh(self.out(torch.cat(pools, dim=1)))
