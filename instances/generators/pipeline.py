"""A step of pipeline-parallel training: micro-batches through a chain of stages, and back."""

from __future__ import annotations

import numpy as np

from ..arrays import require_number
from ..cluster import DeviceType
from ..devices import EFFICIENCY
from ..graph import OpGraph
from .builder import ELEMENT_BYTES, GraphBuilder


def pipeline(
    *,
    stages: int = 8,
    micro_batches: int = 4,
    flops: float = 1e12,
    intensity: float = 20000.0,
    spread: float = 0.3,
    seed: int = 0,
) -> GraphBuilder:
    """Build a chain of `stages` that `micro_batches` pass one by one, forward and, in training, backward.

    All that a stage does to any micro-batch happens on one device, where its weights are (Huang et al., "GPipe",
    NeurIPS 2019). Which stages share a device, and the order of micro-batches there, are left open. The defaults
    are of the size of one layer of a large transformer: 64 ops in training.

    Args:
        stages: forward ops of a micro-batch.
        micro_batches: how many there are, all alike.
        flops: median of a stage's FLOPs, which are log-normal; backward twice as many.
        intensity: median of FLOPs per byte a stage sends, log-normal too: the larger, the cheaper communication.
        spread: standard deviation of the logarithm of the FLOPs: 0 makes all stages equal.
        seed: of the local random generator.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    for name, value in (("stages", stages), ("micro_batches", micro_batches)):
        require_number(value, name, positive=True, whole=True)
    require_number(flops, "flops", positive=True)
    require_number(intensity, "intensity", positive=True)
    require_number(spread, "spread")
    require_number(seed, "seed", whole=True)
    rng = np.random.default_rng(seed)
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
