"""A network over a batch of one encoding as a function of tensors alone: what an exporter can trace."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .batch import Batch
from .network import Schema
from .onnx import joined


def names(schema: Schema) -> list[tuple[str, int]]:
    """Return the tensors by name with their features: of each type, then edges of each relation, and weights if any."""
    found = [(f"nodes.{kind}", width) for kind, width in schema.nodes.items()]
    for relation, width in schema.edges.items():
        found.append((f"edges.{joined(relation)}", width))
        if width:
            found.append((f"weights.{joined(relation)}", width))
    return found


class Flat(nn.Module):
    """Calls a network with the batch that its arguments make up.

    Args:
        network: takes a `Batch`.
        schema: of the encodings.
    """

    def __init__(self, network: nn.Module, schema: Schema) -> None:
        super().__init__()
        self.network, self.schema = network, schema

    def forward(self, *given: Tensor) -> Any:
        """Return what the network does, for tensors in the order of `names`."""
        by = dict(zip((name for name, _ in names(self.schema)), given, strict=True))
        nodes = {kind: by[f"nodes.{kind}"] for kind in self.schema.nodes}
        edges = {relation: by[f"edges.{joined(relation)}"] for relation in self.schema.edges}
        weights = {r: by.get(f"weights.{joined(r)}", edges[r].new_zeros(1, 0)) for r in self.schema.edges}
        of = {kind: torch.zeros_like(x[:, 0], dtype=torch.long) for kind, x in nodes.items()}
        first = {kind: torch.stack([x.sum() * 0, torch.ones_like(x).sum()]) for kind, x in of.items()}
        return self.network(Batch(nodes, edges, weights, of, first, 1))
