"""Many graphs, packed: of each kind and relation one array, from which minibatches are cut as PyG has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from ..training.ragged import rows_of
from .compiled import Graph
from .schema import Schema


class Packed:
    """Graphs of one problem.

    Args:
        schema: what they are made of.
        graphs: all of them; what counts is copied.
    """

    def __init__(self, schema: Schema, graphs: Sequence[Graph]) -> None:
        self.schema, self.count = schema, len(graphs)
        self._x, self._first, self._edges, self._weight, self._from = {}, {}, {}, {}, {}
        for k, (kind, names) in enumerate(schema.kinds.items()):
            parts = [g.x[g.kind[k] : g.kind[k + 1], : len(names)] for g in graphs]
            self._x[kind], self._first[kind] = torch.from_numpy(np.concatenate(parts)), _begins(parts)
        for r, relation in enumerate(schema.relations):
            a, b = schema.ends[r]
            ends, weights = [], []
            for g in graphs:
                part = slice(g.relation[r], g.relation[r + 1])
                ends.append(np.stack([g.source[part] - g.kind[a], g.target[part] - g.kind[b]], axis=1))
                weights.append(g.weight[part])
            self._edges[relation] = torch.from_numpy(np.concatenate(ends))
            self._weight[relation] = torch.from_numpy(np.concatenate(weights))
            self._from[relation] = _begins(weights)

    def first(self, kind: str) -> NDArray[np.int64]:
        """Return the first node of each graph of a kind, and how many there are, int64 (graphs + 1,)."""
        return self._first[kind]

    def ranges(self) -> dict[str, NDArray[np.float32]]:
        """Return the least and the largest of each feature, by kind, float32 (2, features)."""
        return {kind: torch.stack([x.amin(dim=0), x.amax(dim=0)]).numpy() for kind, x in self._x.items()}

    def batch(self, chosen: NDArray[np.int64]) -> HeteroData:
        """Return some of the graphs as one, in this order."""
        data, offset = HeteroData(), {}
        for kind, x in self._x.items():
            rows, data[kind].batch = rows_of(self._first[kind], chosen)
            data[kind].x = x[rows]
            offset[kind] = torch.from_numpy(np.append(0, np.cumsum(np.diff(self._first[kind])[chosen])))
        for relation, edges in self._edges.items():
            rows, of = rows_of(self._from[relation], chosen)
            ends = edges[rows] + torch.stack([offset[relation[0]][of], offset[relation[2]][of]], dim=1)
            data[relation].edge_index = ends.T.contiguous()
            data[relation].edge_weight = self._weight[relation][rows]
        return data


def _begins(parts: Sequence[NDArray[np.generic]]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum([len(part) for part in parts]))
