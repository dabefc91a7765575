"""Random graphs: layers, branches that fork and join, series-parallel graphs, and micro-batches through a pipeline."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ..arrays import require_counts, require_number, require_share
from ..cluster import DeviceType
from ..devices import EFFICIENCY
from ..errors import InstanceError
from ..graph import OpGraph
from .builder import ELEMENT_BYTES, GraphBuilder


def layered(
    *,
    ops: Annotated[int, "forward ops"] = 100,
    layers: Annotated[int, "at most `ops`; each has at least one"] = 20,
    degree: Annotated[
        float,
        "edges per op past the first layer, on average, at least 1. Those past the first come from any earlier layer",
    ] = 1.5,
    flops: Annotated[float, "median of an op's FLOPs, which are log-normal"] = 1e11,
    intensity: Annotated[
        float, "median of FLOPs per byte an op sends, log-normal too: the larger, the cheaper communication"
    ] = 1000.0,
    seed: Annotated[int, "of the local random generator"] = 0,
) -> GraphBuilder:
    """Build `ops` forward ops spread over `layers`; past the first an op has a predecessor in the layer before."""
    draw = _Draw(flops, intensity, seed)
    require_counts(ops=ops, layers=layers)
    require_number(degree, "degree")
    if layers > ops:
        raise InstanceError("layers", f"{layers!r} is more than the {ops!r} ops")
    if not 1 <= degree <= ops:
        raise InstanceError("degree", f"{degree!r} is not between 1 and the {ops!r} ops")
    rng = draw.rng
    starts = np.concatenate([[0], 1 + np.sort(rng.choice(ops - 1, layers - 1, replace=False)), [ops]]).astype(int)
    for layer in range(layers):
        begin, end = starts[layer], starts[layer + 1]
        for i in range(begin, end):
            inputs = [int(rng.integers(starts[layer - 1], begin))] if layer else []
            inputs += rng.integers(0, begin, rng.poisson(degree - 1)).tolist() if layer else []
            draw.op(f"op{i}", *(f"op{j}" for j in sorted(set(inputs))))
    return draw.builder


def fork_join(
    *,
    stages: Annotated[int, "fork-join pairs; a join is the next fork"] = 10,
    width: Annotated[int, "branches of a stage, from 2 (or `width` if less) up to this many"] = 4,
    depth: Annotated[int, "ops of a branch, from 1 up to this many"] = 3,
    flops: Annotated[float, "see `layered`"] = 1e11,
    intensity: Annotated[float, "see `layered`"] = 1000.0,
    seed: Annotated[int, "see `layered`"] = 0,
) -> GraphBuilder:
    """Build a chain of `stages`, each a fork, up to `width` branches of up to `depth` forward ops, and a join."""
    draw = _Draw(flops, intensity, seed)
    require_counts(stages=stages, width=width, depth=depth)
    join = draw.op("join0")
    for stage in range(1, stages + 1):
        ends = []
        for branch in range(draw.rng.integers(min(2, width), width + 1)):
            x = join
            for i in range(draw.rng.integers(1, depth + 1)):
                x = draw.op(f"stage{stage}/branch{branch}/op{i}", x)
            ends.append(x)
        join = draw.op(f"join{stage}", *ends)
    return draw.builder


class _Draw:
    """Ops of random size."""

    def __init__(self, flops: float, intensity: float, seed: int) -> None:
        require_number(flops, "flops", positive=True)
        require_number(intensity, "intensity", positive=True)
        require_number(seed, "seed", whole=True)
        self.builder = GraphBuilder()
        self.rng = np.random.default_rng(seed)
        self._flops, self._intensity = flops, intensity

    def op(self, name: str, *inputs: str) -> str:
        """Add an op; half of the ops have weights, a twentieth as large as their output."""
        flops = self._flops * self.rng.lognormal(0.0, 1.0)
        output = flops / (self._intensity * self.rng.lognormal(0.0, 0.5)) / ELEMENT_BYTES
        weights = output / 20 if self.rng.random() < 0.5 else 0.0
        return self.builder.op(name, *inputs, flops=flops, output=output, parameters=weights)


def series_parallel(
    *,
    ops: Annotated[int, "forward ops"] = 100,
    series: Annotated[
        float, "chance of a step in series, from 0 (every new op has a way around it) to 1 (a chain)"
    ] = 0.5,
    flops: Annotated[float, "see `layered`"] = 1e11,
    intensity: Annotated[float, "see `layered`"] = 1000.0,
    seed: Annotated[int, "see `layered`"] = 0,
) -> GraphBuilder:
    """Grow a series-parallel graph from one edge, an op at a time, until it has `ops` forward ops.

    An edge u -> v, each as likely, gets the new op w: in series (u -> w -> v instead) or in parallel (u -> w -> v
    beside). All two-terminal series-parallel graphs without double edges can come out, and no others: they are those
    that the reverse steps take back to one edge (Valdes, Tarjan and Lawler, SIAM J. Comput. 11(2), 1982).
    """
    draw = _Draw(flops, intensity, seed)
    require_counts(ops=ops)
    require_share(series, "series")
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


def pipeline(
    *,
    stages: Annotated[int, "forward ops of a micro-batch"] = 8,
    micro_batches: Annotated[int, "how many there are, all alike"] = 4,
    flops: Annotated[float, "median of a stage's FLOPs, which are log-normal; backward twice as many"] = 1e12,
    intensity: Annotated[
        float, "median of FLOPs per byte a stage sends, log-normal too: the larger, the cheaper communication"
    ] = 20000.0,
    spread: Annotated[float, "standard deviation of the logarithm of the FLOPs: 0 makes all stages equal"] = 0.3,
    seed: Annotated[int, "of the local random generator"] = 0,
) -> GraphBuilder:
    """Build a chain of `stages` that `micro_batches` pass one by one, forward and, in training, backward.

    All that a stage does to any micro-batch happens on one device, where its weights are (Huang et al., "GPipe",
    NeurIPS 2019). Which stages share a device, and the order of micro-batches there, are left open. The defaults
    are of the size of one layer of a large transformer: 64 ops in training.
    """
    require_counts(stages=stages, micro_batches=micro_batches)
    require_number(spread, "spread")
    rng = _Draw(flops, intensity, seed).rng
    builder = _MicroBatches(micro_batches)
    inputs: tuple[str, ...] = ()
    for i in range(stages):
        work = flops * rng.lognormal(0.0, spread)
        output = work / (intensity * rng.lognormal(0.0, 0.5)) / ELEMENT_BYTES
        inputs = (builder.op(f"stage{i}", *inputs, flops=work, output=output, parameters=output),)
    return builder


class _MicroBatches(GraphBuilder):
    """A builder whose graph is repeated for each micro-batch."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def graph(self, *devices: DeviceType, training: bool = True, efficiency: float = EFFICIENCY) -> OpGraph:
        """Return the graph of all micro-batches; see `GraphBuilder.graph`."""
        return _repeated(super().graph(*devices, training=training, efficiency=efficiency), self._count)


def _repeated(graph: OpGraph, count: int) -> OpGraph:
    """Return `count` copies of `graph`, copies of one op colocated; weights are kept and counted by the first."""
    n = graph.n_ops
    lone = graph.colocation < 0
    colocation = graph.colocation.copy()
    colocation[lone] = np.arange(lone.sum(), dtype=np.int32) + colocation.max(initial=-1) + 1
    shift = np.arange(count, dtype=np.int32)[:, None] * n
    first = np.arange(count) == 0

    def weights(bytes_: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.where(first[:, None], bytes_, others).ravel()

    return OpGraph(
        names=tuple(f"batch{k}/{name}" for k in range(count) for name in graph.names),
        device_types=graph.device_types,
        time=np.tile(graph.time, count),
        memory=weights(graph.memory, np.minimum(graph.memory, graph.activation_bytes)),
        parameter_bytes=weights(graph.parameter_bytes, np.zeros(n)),
        activation_bytes=np.tile(graph.activation_bytes, count),
        source=(graph.source + shift).ravel(),
        target=(graph.target + shift).ravel(),
        edge_bytes=np.tile(graph.edge_bytes, count),
        colocation=np.tile(colocation, count),
        twin=np.where(graph.twin < 0, -1, graph.twin + shift).ravel(),
        backward=np.tile(graph.backward, count),
    )
