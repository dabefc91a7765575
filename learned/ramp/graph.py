"""A job's op graph as numbers: one vector a job, by message passing over its ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, global_max_pool, global_mean_pool

from gangplan.instances import OpGraph

OP = ("time", "memory", "depth", "backward", "parents", "children")
EMBEDDING = 8
"""Numbers that a job comes to."""


class Graphs(NamedTuple):
    """The ops of k jobs in one graph of o ops and e edges.

    Attributes:
        x: features of the ops, see `OP`, float32 (o, len(OP)): shares of the largest, so that units do not matter.
        edges: int64 (2, 2 e), each edge in both directions.
        job: of each op, int64 (o,).
        count: k.
    """

    x: Tensor
    edges: Tensor
    job: Tensor
    count: int


def encode(graphs: Sequence[OpGraph]) -> Graphs:
    """Return the op graphs of some jobs, unsplit."""
    xs, edges, jobs, start = [], [], [], 0
    for k, graph in enumerate(graphs):
        ends = np.stack([graph.source, graph.target]).astype(np.int64)
        parents, children = (np.bincount(end, minlength=graph.n_ops) for end in (ends[1], ends[0]))
        depth = np.zeros(graph.n_ops)
        order = np.argsort(graph.topological_order())
        depth[:] = order / max(graph.n_ops - 1, 1)
        columns = (_share(graph.time[0]), _share(graph.memory), depth, graph.backward, parents / 4, children / 4)
        xs.append(np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1))
        edges.append(np.concatenate([ends, ends[::-1]], axis=1) + start)
        jobs.append(np.full(graph.n_ops, k))
        start += graph.n_ops
    return Graphs(
        torch.from_numpy(np.concatenate(xs)),
        torch.from_numpy(np.concatenate(edges, axis=1)),
        torch.from_numpy(np.concatenate(jobs)),
        len(graphs),
    )


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
        x = torch.relu(self.first(graphs.x, graphs.edges))
        x = torch.relu(self.second(x, graphs.edges))
        pools = [pool(x, graphs.job, graphs.count) for pool in (global_mean_pool, global_max_pool)]
        return torch.tanh(self.out(torch.cat(pools, dim=1)))


def _share(values: np.ndarray) -> np.ndarray:
    largest = values.max(initial=0.0)
    return values / largest if largest > 0 else values
