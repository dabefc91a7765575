"""The network: a vector of each job by messages over its ops, and with it scores of a decision's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, global_max_pool, global_mean_pool

from gangplan.instances import OpGraph

from ..policy.perceptron import Weights, weights_of
from .features import CANDIDATE, CONTEXT, JOB, WIDTH
from .ops import OP, read
from .settings import Variant

_TOTALS = len(CONTEXT) + len(JOB) + len(CANDIDATE)
_HISTORY = CONTEXT.index("busy")
"""Features of the context that are of the jobs so far; they come first."""

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
        x, edges, job, count = graphs
        x = torch.relu(self.first(x, edges))
        x = torch.relu(self.second(x, edges))
        pools = [pool(x, job, count) for pool in (global_mean_pool, global_max_pool)]
        return torch.tanh(self.out(torch.cat(pools, dim=1)))


class Network(nn.Module):
    """Scores rows: the first layer sums up the messages of the blocks, two more weigh what a candidate leaves.

    Args:
        width: of the hidden layers.
        variant: what it sees.
    """

    def __init__(self, width: int = 64, variant: Variant = "gnn") -> None:
        super().__init__()
        self.variant = variant
        self.rows = nn.Linear(WIDTH, width)
        self.job = nn.Linear(EMBEDDING, width, bias=False)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)
        self.encoder = JobEncoder()
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

    def offsets(self, graphs: Graphs) -> Tensor:
        """Return what each job adds to the first layer, (k, width)."""
        if self.variant in ("totals", "no-graph"):
            return torch.zeros(graphs.count, self.width)
        found: Tensor = self.job(self.encoder(graphs))
        return found

    def forward(self, rows: Tensor, offset: Tensor) -> Tensor:
        """Return a score a row, (A,).

        Args:
            rows: features, (A, WIDTH).
            offset: of the job of each row, (A, width), or of the one job of all, (1, width).
        """
        x = torch.relu(self.rows(rows * self.seen) + offset)
        found: Tensor = self.out(torch.relu(self.hidden(x)))[:, 0]
        return found


def compiled(network: Network, graphs: Graphs) -> Weights:
    """Return the weights as arrays, with the vectors of some jobs worked in."""
    with torch.no_grad():
        first = (network.rows.weight * network.seen).T
        return weights_of(network, first, network.offsets(graphs) + network.rows.bias)
