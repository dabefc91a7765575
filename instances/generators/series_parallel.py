"""Random series-parallel graphs: two ends, and nothing but chains and branches in each other."""

from __future__ import annotations

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .random_dag import _Draw


def series_parallel(
    *, ops: int = 100, series: float = 0.5, flops: float = 1e11, intensity: float = 1000.0, seed: int = 0
) -> GraphBuilder:
    """Grow a series-parallel graph from one edge, an op at a time, until it has `ops` forward ops.

    An edge u -> v, each as likely, gets the new op w: in series (u -> w -> v instead) or in parallel (u -> w -> v
    beside). All two-terminal series-parallel graphs without double edges can come out, and no others: they are those
    that the reverse steps take back to one edge (Valdes, Tarjan and Lawler, SIAM J. Comput. 11(2), 1982).

    Args:
        ops: forward ops.
        series: chance of a step in series, from 0 (every new op has a way around it) to 1 (a chain).
        flops, intensity, seed: see `layered`.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    draw = _Draw(flops, intensity, seed)
    require_number(ops, "ops", positive=True, whole=True)
    require_number(series, "series")
    if series > 1:
        raise InstanceError("series", f"{series!r} is more than 1")
    edges = [(0, 1)]
    following: dict[int, int] = {0: 1}  # a topological order as a linked list
    for w in range(2, ops):
        i = int(draw.rng.integers(len(edges)))
        u, v = edges[i]
        if draw.rng.random() < series:
            edges[i] = (u, w)
        else:
            edges.append((u, w))
        edges.append((w, v))
        # right after u is before v, for u comes before v
        following[w], following[u] = following[u], w
    order = [0]
    while len(order) < ops:
        order.append(following[order[-1]])
    inputs: dict[int, list[str]] = {v: [] for v in order}
    names = {v: f"op{i}" for i, v in enumerate(order)}
    if ops > 1:
        for u, v in edges:
            inputs[v].append(names[u])
    for v in order:
        draw.op(names[v], *inputs[v])
    return draw.builder
