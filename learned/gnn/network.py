"""A network over nodes and edges of several types: after some rounds of messages each node has a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from .encoding import Encoding, Relation


@dataclass(frozen=True, slots=True)
class Batch:
    """The disjoint union of some encodings; nothing is padded.

    Attributes:
        nodes: features of each type of node, float32 (count, features).
        edges: of each relation, int64 (2, count), into the union.
        weights: features of the edges, float32 (count, features).
        first: of each type, where the nodes of each of B encodings begin, and how many there are, int64 (B + 1,).
    """

    nodes: dict[str, Tensor]
    edges: dict[Relation, Tensor]
    weights: dict[Relation, Tensor]
    first: dict[str, Tensor]


def collate(encodings: Sequence[Encoding], device: torch.device | str = "cpu") -> Batch:
    """Return the union of encodings of one kind of problem, on `device`."""
    kinds, relations = encodings[0].nodes, encodings[0].edges
    counts = {kind: np.array([len(e.nodes[kind]) for e in encodings]) for kind in kinds}
    first = {kind: np.concatenate([[0], np.cumsum(n)]) for kind, n in counts.items()}
    edges = {}
    for relation in relations:
        a, _, b = relation
        shifted = [e.edges[relation] + np.array([[first[a][i]], [first[b][i]]]) for i, e in enumerate(encodings)]
        edges[relation] = torch.from_numpy(np.concatenate(shifted, axis=1)).to(device)
    return Batch(
        nodes={kind: _joined([e.nodes[kind] for e in encodings], device) for kind in kinds},
        edges=edges,
        weights={r: _joined([e.weights[r] for e in encodings], device) for r in relations},
        first={kind: torch.from_numpy(x).to(device) for kind, x in first.items()},
    )


def _joined(parts: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.float32]]], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)


@dataclass(frozen=True, slots=True)
class Schema:
    """What the encodings of a problem have: the same for all of its instances.

    Attributes:
        nodes: how many features each type of node has.
        edges: how many the edges of each relation have.
    """

    nodes: dict[str, int]
    edges: dict[Relation, int]


def schema_of(encoding: Encoding) -> Schema:
    """Return the schema of an encoding, and of all others of its problem."""
    nodes = {kind: x.shape[1] for kind, x in encoding.nodes.items()}
    return Schema(nodes, {relation: x.shape[1] for relation, x in encoding.weights.items()})


def mlp(sizes: list[int]) -> nn.Sequential:
    """Return linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        layers += [nn.Linear(a, b)] if i == 0 else [nn.ReLU(), nn.Linear(a, b)]
    return nn.Sequential(*layers)


class GraphNetwork(nn.Module):
    """Heterogeneous message passing (Gilmer et al., ICML 2017; relations as in Schlichtkrull et al., ESWC 2018).

    In a round, a node gets from each relation the mean and the maximum of its messages ReLU(W h + V e), h being the
    vector of the other end and e the features of the edge; what comes of all of them is added to its own vector.

    Args:
        schema: of the encodings.
        width: of the vectors.
        rounds: of messages; with none of them a node knows its own features only.
    """

    def __init__(self, schema: Schema, width: int = 48, rounds: int = 3) -> None:
        super().__init__()
        self.schema, self.width = schema, width
        # features are cut off at a million and mostly below ten: the logarithm keeps what is left in range
        self.enter = nn.ModuleDict({kind: mlp([n, width, width]) for kind, n in schema.nodes.items()})
        self.rounds = nn.ModuleList(_Round(schema, width) for _ in range(rounds))
        self.norm = nn.ModuleDict({kind: nn.LayerNorm(width) for kind in schema.nodes})

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Return a vector a node of each type, (count, width)."""
        hidden = {kind: layer(squeezed(batch.nodes[kind])) for kind, layer in self.enter.items()}
        for layer in self.rounds:
            hidden = layer(hidden, batch)
        return {kind: self.norm[kind](x) for kind, x in hidden.items()}


def squeezed(features: Tensor) -> Tensor:
    """Return features with what is beyond 1 pressed together: x up to 1, 1 + log x beyond, and so below -1."""
    size = features.abs()
    return torch.where(size > 1, features.sign() * (1 + size.clamp(min=1).log()), features)


class _Round(nn.Module):
    """One round of messages along all relations."""

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__()
        self.names = {relation: "_".join(relation) for relation in schema.edges}
        self.send = nn.ModuleDict({name: nn.Linear(width, width) for name in self.names.values()})
        edges = {self.names[r]: nn.Linear(n, width, bias=False) for r, n in schema.edges.items() if n}
        self.edge = nn.ModuleDict(edges)
        self.take = nn.ModuleDict({n: nn.Linear(2 * width, width, bias=False) for n in self.names.values()})
        self.norm = nn.ModuleDict({kind: nn.LayerNorm(width) for kind in schema.nodes})
        self.own = nn.ModuleDict({kind: nn.Linear(width, width) for kind in schema.nodes})
        self.out = nn.ModuleDict({kind: nn.Linear(width, width) for kind in schema.nodes})

    def forward(self, hidden: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        calm = {kind: self.norm[kind](x) for kind, x in hidden.items()}
        found = {kind: self.own[kind](x) for kind, x in calm.items()}
        for relation, name in self.names.items():
            a, _, b = relation
            source, target = batch.edges[relation]
            message = self.send[name](calm[a])[source]
            if name in self.edge:
                message = message + self.edge[name](squeezed(batch.weights[relation]))
            message = torch.relu(message)
            found[b] = found[b] + self.take[name](_gathered(message, target, hidden[b].shape[0]))
        return {kind: x + self.out[kind](torch.relu(found[kind])) for kind, x in hidden.items()}


def _gathered(message: Tensor, target: Tensor, n: int) -> Tensor:
    """Return mean and maximum of the messages to each of n nodes, (n, 2 width); 0 for one that gets none.

    Messages are not negative, so that a maximum with 0 changes nothing. An exporter follows shapes, where the length of
    a tensor would be a constant to it.
    """
    width = message.shape[1]
    total = message.new_zeros((n, width)).index_add(0, target, message)
    count = message.new_zeros(n).index_add(0, target, message.new_ones(target.shape[0]))
    index = target[:, None].expand(-1, width)
    top = message.new_zeros((n, width)).scatter_reduce(0, index, message, "amax")
    return torch.cat([total / count.clamp(min=1)[:, None], top], dim=1)
