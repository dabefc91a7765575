"""Several encodings as one graph of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..encode.encoding import Encoding, Relation


@dataclass(frozen=True, slots=True)
class Batch:
    """The disjoint union of some encodings; nothing is padded.

    Attributes:
        nodes: features of each type of node, float32 (count, features).
        edges: of each relation, int64 (2, count), into the union.
        weights: features of the edges, float32 (count, features).
        of: the encoding that each node comes from, int64 (count,).
        first: of each type, where the nodes of each encoding begin, and how many there are in all, int64 (B + 1,).
        size: B, how many encodings.
    """

    nodes: dict[str, Tensor]
    edges: dict[Relation, Tensor]
    weights: dict[Relation, Tensor]
    of: dict[str, Tensor]
    first: dict[str, Tensor]
    size: int


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
        of={kind: torch.from_numpy(np.repeat(np.arange(len(n)), n)).to(device) for kind, n in counts.items()},
        first={kind: torch.from_numpy(x).to(device) for kind, x in first.items()},
        size=len(encodings),
    )


def _joined(parts: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.float32]]], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)
