"""The graph network in PyTorch Geometric: rounds of messages between typed nodes, then scores of one kind.

Many graphs are packed: of each kind and relation one array, from which minibatches are cut as PyG has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import SimpleConv

from gangplan.instances.arrays import offsets

from ..graph.compiled import FAR, CompiledNetwork, Graph, network_of
from ..graph.schema import Schema
from .ragged import rows_of


class GraphNetwork(nn.Module):
    """Score the nodes of one kind of a graph.

    In each round a node adds to what it is relu(own(h) + sum over relations of message(weighted sum of neighbours)).
    The scores begin at 0: an untrained network changes no rule whose scores it corrects.

    Args:
        schema: what graphs are made of.
        width: of the hidden layers.
        rounds: of messages.
        messages: whether there are any; without, every node is alone, to tell what messages are worth.
        ranged: whether it notes between which numbers features are in training.
    """

    def __init__(
        self, schema: Schema, width: int = 32, rounds: int = 3, *, messages: bool = True, ranged: bool = False
    ) -> None:
        super().__init__()
        self.schema, self.width, self.messages = schema, width, messages
        self.enter = nn.ModuleDict({kind: nn.Linear(len(names), width) for kind, names in schema.kinds.items()})
        self.own = nn.ModuleList(
            nn.ModuleDict({kind: nn.Linear(width, width) for kind in schema.kinds}) for _ in range(rounds)
        )
        self.told = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in schema.relations if messages)
            for _ in range(rounds)
        )
        self.head = nn.Linear(width, width)
        self.last = nn.Linear(width, schema.outputs, bias=False)
        nn.init.zeros_(self.last.weight)
        for kind, names in schema.kinds.items() if ranged else ():
            self.register_buffer(f"range_{kind}", torch.stack([-torch.ones(len(names)), torch.ones(len(names))]) * FAR)
        self._heard = SimpleConv(aggr="add")

    def note_ranges(self, ranges: Mapping[str, np.ndarray]) -> None:
        """Note between which numbers the features of each kind are in training, float32 (2, features)."""
        for kind, range_ in ranges.items():
            getattr(self, f"range_{kind}").copy_(torch.from_numpy(range_))

    def forward(self, graph: HeteroData) -> Tensor:
        """Return the scores of the nodes of the kind that gets some, (nodes, outputs).

        Args:
            graph: ``graph[kind].x``, and of each relation ``edge_index`` and ``edge_weight``.
        """
        h = {kind: torch.relu(enter(graph[kind].x)) for kind, enter in self.enter.items()}
        for own, told in zip(self.own, self.told, strict=True):
            new = {kind: own[kind](x) for kind, x in h.items()}
            for relation, message in zip(self.schema.relations, told, strict=False):
                edges, ends = graph[relation], (h[relation[0]], h[relation[2]])
                if edges.edge_index.shape[1]:
                    new[relation[2]] = new[relation[2]] + message(
                        self._heard(ends, edges.edge_index, edges.edge_weight)
                    )
            h = {kind: x + torch.relu(new[kind]) for kind, x in h.items()}
        return self.last(torch.relu(self.head(h[self.schema.scored])))

    def compiled(self) -> CompiledNetwork:
        """Return the weights as arrays, see `gangplan.learned.graph.compiled`."""
        arrays = {name: x.detach().cpu().numpy().astype(np.float32) for name, x in self.state_dict().items()}
        return network_of(self.schema, arrays)


class Packed:
    """Graphs of one problem.

    Args:
        schema: what they are made of.
        graphs: all of them; what counts is copied.

    Attributes:
        first: the first node of each graph of a kind, and how many there are, int64 (graphs + 1,).
    """

    def __init__(self, schema: Schema, graphs: Sequence[Graph]) -> None:
        self.schema, self.count = schema, len(graphs)
        self._x, self.first, self._edges, self._weight, self._from = {}, {}, {}, {}, {}
        for k, (kind, names) in enumerate(schema.kinds.items()):
            parts = [g.x[g.kind[k] : g.kind[k + 1], : len(names)] for g in graphs]
            self._x[kind], self.first[kind] = torch.from_numpy(np.concatenate(parts)), offsets([*map(len, parts)])
        for r, relation in enumerate(schema.relations):
            a, b = schema.ends[r]
            ends, weights = [], []
            for g in graphs:
                part = slice(g.relation[r], g.relation[r + 1])
                ends.append(np.stack([g.source[part] - g.kind[a], g.target[part] - g.kind[b]], axis=1))
                weights.append(g.weight[part])
            self._edges[relation] = torch.from_numpy(np.concatenate(ends))
            self._weight[relation] = torch.from_numpy(np.concatenate(weights))
            self._from[relation] = offsets([*map(len, weights)])

    def ranges(self) -> dict[str, NDArray[np.float32]]:
        """Return the least and the largest of each feature, by kind, float32 (2, features)."""
        return {kind: torch.stack([x.amin(dim=0), x.amax(dim=0)]).numpy() for kind, x in self._x.items()}

    def batch(self, chosen: NDArray[np.int64]) -> HeteroData:
        """Return some of the graphs as one, in this order."""
        data, offset = HeteroData(), {}
        for kind, x in self._x.items():
            rows, data[kind].batch = rows_of(self.first[kind], chosen)
            data[kind].x = x[rows]
            offset[kind] = torch.from_numpy(offsets(np.diff(self.first[kind])[chosen]))
        for relation, edges in self._edges.items():
            rows, of = rows_of(self._from[relation], chosen)
            ends = edges[rows] + torch.stack([offset[relation[0]][of], offset[relation[2]][of]], dim=1)
            data[relation].edge_index = ends.T.contiguous()
            data[relation].edge_weight = self._weight[relation][rows]
        return data
