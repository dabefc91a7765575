"""A graph with several types of nodes and relations as arrays, and how numbers lose their units and their size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Index = NDArray[np.int64]
Relation = tuple[str, str, str]
Columns = Mapping[str, Any]
MOST = 1e6
"""Ratios are cut off here, so that float32 and a network can hold them."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Nodes by type and edges by relation; nothing is padded.

    Attributes:
        nodes: features of each type of node, float32 (count, features).
        edges: of each relation (source type, name, target type), int64 (2, count).
        weights: features of the edges, float32 (count, features).
    """

    nodes: dict[str, Matrix] = field(default_factory=dict)
    edges: dict[Relation, Index] = field(default_factory=dict)
    weights: dict[Relation, Matrix] = field(default_factory=dict)

    def add(self, kind: str, count: int, columns: Columns) -> None:
        """Add the nodes of a type; a column is (count,) or one number for all."""
        self.nodes[kind] = _stack(count, columns)

    def join(self, relation: Relation, source: Any, target: Any, columns: Columns | None = None) -> None:
        """Add the edges of a relation, and those of its reverse, named ``rev_...``."""
        columns = {} if columns is None else columns
        a, name, b = relation
        pair = np.stack([np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)])
        weights = _stack(pair.shape[1], columns)
        for key, edges in ((relation, pair), ((b, f"rev_{name}", a), pair[::-1].copy())):
            self.edges[key], self.weights[key] = edges, weights


def _stack(count: int, columns: Columns) -> Matrix:
    out = np.zeros((count, len(columns)), dtype=np.float32)
    for i, values in enumerate(columns.values()):
        out[:, i] = values
    return out


def over(x: Any, y: Any) -> Floats:
    """Return x / y elementwise, 0 where y is 0 or infinite, cut off at `MOST`; x is not negative."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    ok = (y > 0) & np.isfinite(y)
    found = np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape)), where=ok)
    return np.asarray(np.minimum(np.nan_to_num(found, nan=0.0, posinf=MOST), MOST))


def log_over(x: Any, y: Any) -> Floats:
    """Return log(1 + x / y) as `over` divides: 0 stays 0, and sizes far apart come near one another."""
    return np.asarray(np.log1p(over(x, y)))


def signed_log_over(x: Any, y: Any) -> Floats:
    """Return the same with the sign of x."""
    return np.asarray(np.sign(x) * log_over(np.abs(x), y))


def mean(x: Any) -> float:
    """Return the mean of the finite values, 0 if there are none."""
    x = np.asarray(x, dtype=float)
    x = x[np.isfinite(x)]
    return float(x.mean()) if x.size else 0.0


def first_positive(*values: float) -> float:
    """Return the first that is positive, 1 if none is: what to measure by."""
    return next((x for x in values if x > 0), 1.0)
