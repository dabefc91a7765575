"""DLRM, a recommendation model, op by op (Naumov et al., arXiv 1906.00091)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from ..arrays import require_counts
from ..errors import InstanceError
from .builder import GraphBuilder

CRITEO_ROWS = (
    *(39_884_406, 39_043, 17_289, 7_420, 20_263, 3, 7_120, 1_543, 63, 38_532_951, 2_953_546, 403_346, 10),
    *(2_208, 11_938, 155, 4, 976, 14, 39_979_771, 25_641_295, 39_664_984, 585_935, 12_972, 108, 36),
)
"""Values of the 26 categorical features of the Criteo Terabyte data, indices taken modulo 40 million, as in MLPerf
Training 0.7 to 2.1: 187,767,399 rows."""
NUMERIC = 13
"""Numeric features of the Criteo data."""
LOSS_FLOPS = 5
"""Of the sigmoid, and of the cross-entropy, per sample; a round figure."""


def dlrm(
    *,
    tables: Annotated[
        int, "embedding tables, one a categorical feature; past 26 the sizes of Criteo's begin again"
    ] = 26,
    rows: Annotated[
        int, "the most rows of a table; a table of Criteo's that has fewer keeps its own number"
    ] = 10_000_000,
    dimension: Annotated[int, "width of the embeddings and of the bottom network's output"] = 128,
    bottom: Annotated[str, "hidden widths of the network for the 13 numeric features"] = "512-256",
    top: Annotated[str, "hidden widths of the network that sees the interactions"] = "1024-1024-512-256",
    batch: Annotated[int, "samples"] = 2048,
) -> GraphBuilder:
    """Build MLPerf's DLRM on Criteo's features with its loss, scaled to tables of at most 10 million rows.

    With ``rows=40_000_000`` it is MLPerf's own: 24,036,595,969 parameters, too large to train on four A100s.
    """
    require_counts(tables=tables, rows=rows, dimension=dimension, batch=batch)
    b = GraphBuilder()
    x = _network(b, "bottom", None, [NUMERIC, *_widths(bottom, "bottom"), dimension], batch)
    vectors = [x]
    for i in range(tables):
        size = batch * dimension
        weights = min(CRITEO_ROWS[i % len(CRITEO_ROWS)], rows) * dimension
        vectors.append(b.op(f"table{i}", flops=0, output=size, parameters=weights, touched=size))
    n = len(vectors)
    stack = b.op("interaction/stack", *vectors, flops=0, output=batch * n * dimension)
    product = 2 * batch * n**2 * dimension  # of activations: two gradients, each as costly as itself
    dots = b.op("interaction/product", stack, flops=product, output=batch * n**2, gradient=2 * product)
    features = n * (n - 1) // 2 + dimension  # each pair once, and the numeric features as they are
    x = b.op("interaction/pairs", dots, x, flops=0, output=batch * features)
    x = _network(b, "top", x, [features, *_widths(top, "top"), 1], batch)
    b.op("loss", x, flops=LOSS_FLOPS * batch, output=batch)
    return b


def _network(b: GraphBuilder, name: str, x: str | None, widths: list[int], batch: int) -> str:
    """Add dense layers with ReLUs between; the last of the bottom network has one too, that of the top a sigmoid."""
    for i, (inner, outer) in enumerate(pairwise(widths)):
        size = batch * outer
        weights = inner * outer + outer
        last = name == "top" and i == len(widths) - 2
        inputs = () if x is None else (x,)
        y = b.op(f"{name}/dense{i}", *inputs, flops=2 * inner * size, output=size, parameters=weights)
        gate, each = ("sigmoid", LOSS_FLOPS) if last else (f"relu{i}", 1)
        x = b.op(f"{name}/{gate}", y, flops=each * size, output=size)
    assert x is not None
    return x


def _widths(text: str, field: str) -> list[int]:
    parts = text.split("-") if isinstance(text, str) else []
    if not parts or not all(part.isascii() and part.isdigit() and len(part) < 10 and int(part) for part in parts):
        raise InstanceError(field, f"{text!r} is not positive whole numbers joined by hyphens, like 512-256")
    return [int(part) for part in parts]
