"""The network: averaged messages along the op graph, what is known of job and cluster, a hidden layer, scores.

Sizes are the published ones by default. Where the paper has one body and two heads, the values have a network of their
own, of the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing, global_mean_pool
from torch_geometric.utils import add_self_loops

from ..arrivals import DISTRIBUTIONS
from .observe import ACTIONS, EDGE, FEATURES, NODE, OpRows
from .recipe import PublishedSettings


class MeanPool(MessagePassing):
    """Average what an op and those before it say: relu(W mean [relu(A z_u), relu(B e_uv)]), its own e being 0.

    Args:
        before, width: numbers of an op before and after.
    """

    def __init__(self, before: int, width: int) -> None:
        super().__init__(aggr="mean")
        self.node, self.edge = nn.Linear(before, width), nn.Linear(len(EDGE), width)
        self.out = nn.Linear(2 * width, width)

    def forward(self, z: Tensor, ends: Tensor, edges: Tensor) -> Tensor:
        """Return the numbers of each op, (n, width)."""
        ends, said = add_self_loops(ends, self.edge(edges).relu(), 0.0, len(z))
        return self.out(self.propagate(ends, z=self.node(z).relu(), said=said)).relu()

    def message(self, z_j: Tensor, said: Tensor) -> Tensor:
        """Return what goes along each edge, (m, 2 width)."""
        return torch.cat([z_j, said], dim=1)


def batch_of(graphs: Sequence[OpRows]) -> Any:
    """Return graphs as one batch."""
    rows = [[torch.from_numpy(part) for part in (x.nodes, x.ends, x.edges)] for x in graphs]
    return Batch.from_data_list([Data(x=x, edge_index=ends, edge_attr=edges) for x, ends, edges in rows])


def encode(rounds: Iterable[nn.Module], graphs: Any) -> Tensor:
    """Return the mean over the ops of each graph of a batch after rounds of messages, (graphs, width)."""
    z = graphs.x
    for layer in rounds:
        z = layer(z, graphs.edge_index, graphs.edge_attr)
    return global_mean_pool(z, graphs.batch, graphs.num_graphs)


class DegreeNetwork(nn.Module):
    """Scores degrees, or gives a value.

    Attributes:
        graphs: of the models that rows are of, a batch.
    """

    def __init__(self, settings: PublishedSettings, outputs: int = ACTIONS) -> None:
        super().__init__()
        node = settings.node
        self.rounds = nn.ModuleList(MeanPool(node if i else len(NODE), node) for i in range(settings.rounds))
        self.features = nn.Linear(FEATURES, settings.graph)
        self.body = nn.Linear(node + settings.graph, settings.width)
        self.last = nn.Linear(settings.width, outputs)
        self.graphs: Any = None
        self._kept: tuple[int, Tensor] | None = None

    def encode(self, graphs: Any) -> Tensor:
        """Return the mean over the ops of each graph of a batch, (graphs, node)."""
        return encode(self.rounds, graphs)

    def head(self, vectors: Tensor, features: Tensor) -> Tensor:
        """Return the outputs of B decisions from vectors of their graphs, (B, outputs)."""
        known = torch.cat([vectors, self.features(features).relu()], dim=1)
        return self.last(self.body(known).relu())

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs of rows, (B, outputs): the number of the graph, then the features."""
        return self.head(self._vectors()[rows[:, 0].long()], rows[:, 1:])

    def _vectors(self) -> Tensor:
        """Return those of all graphs; they stay until weights change."""
        if torch.is_grad_enabled():
            return self.encode(self.graphs)
        version = sum(x._version for x in self.parameters())
        if self._kept is None or self._kept[0] != version:
            self._kept = version, self.encode(self.graphs)
        return self._kept[1]


class Policies(nn.Module):
    """A network for each distribution of what users accept.

    Attributes:
        distribution: whose network scores rows.
    """

    def __init__(self, settings: PublishedSettings) -> None:
        super().__init__()
        self.of = nn.ModuleDict({name: DegreeNetwork(settings) for name in DISTRIBUTIONS})
        self.distribution = next(iter(DISTRIBUTIONS))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of rows, (B, ACTIONS)."""
        return self.of[self.distribution](rows)


class DegreeCritic(DegreeNetwork):
    """A value a state, by a network of the same form."""

    def __init__(self, settings: PublishedSettings) -> None:
        super().__init__(settings, 1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the values, (B,)."""
        return super().forward(rows)[:, 0]
