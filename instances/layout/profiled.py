"""Measured layers of an op graph: what `gangplan profile` measured of a model becomes a chain of blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import FloatArray, IntArray
from ..errors import InstanceError
from ..generators.builder import TRAINING_BYTES
from ..graph import OpGraph
from .measured import MeasuredLayers

_FLOAT = 4
"""Bytes of a parameter of a profiled model."""


def profiled_layers(graphs: Mapping[int, OpGraph], gpu: str, device: str | None = None) -> MeasuredLayers:
    """Return the layers of a profiled model, cut wherever the output of one op alone is passed on.

    GPUs do not share a layer (TP 1), and the optimizer's seconds are not measured: they count as none.

    Args:
        graphs: of training, by sequences at once; all of one model, as `gangplan profile --measure` makes them.
        gpu: the type that they were measured on, as the pools of a problem name it.
        device: the device type of the graphs, by default their only one.

    Raises:
        InstanceError: if there is no graph, one has no backward pass or other ops than the first, or nowhere one
            output alone is passed on.
    """
    if not graphs:
        raise InstanceError("graphs", "there is none")
    first = next(iter(graphs.values()))
    block = _blocks(first)
    rows = []
    for batch, graph in graphs.items():
        where = f"graphs[{batch!r}]"
        if graph.names != first.names:
            raise InstanceError(where, f"its {graph.n_ops} ops are not those of the first one")
        if device is None and len(graph.device_types) > 1:
            raise InstanceError("device", f"is missing: one of {', '.join(graph.device_types)}")
        if device not in (None, *graph.device_types):
            raise InstanceError("device", f"{device!r} is not one of {', '.join(graph.device_types)}")
        seconds = graph.time[0 if device is None else graph.device_types.index(device)]
        forward, twin = ~graph.backward, graph.twin
        of = np.where(forward, block, block[twin])
        kept = np.maximum(0.0, graph.memory - TRAINING_BYTES / _FLOAT * graph.parameter_bytes)
        sent = np.zeros(int(block.max()) + 1)
        ahead = forward[graph.source] & forward[graph.target] & (of[graph.source] < of[graph.target])
        np.maximum.at(sent, of[graph.source][ahead], graph.edge_bytes[ahead])
        rows.append([_sums(of, seconds * forward), _sums(of, seconds * ~forward), _sums(of, kept), sent])
    time, back, kept, sent = (np.array(x) for x in zip(*rows, strict=True))
    weights = np.tile(_sums(block, first.parameter_bytes / _FLOAT), (len(rows), 1))
    names = tuple(first.names[int(np.flatnonzero(block == i)[0])] for i in range(time.shape[1]))
    batches, one = np.array([*graphs], dtype=np.int32), np.ones(len(rows), dtype=np.int32)
    return MeasuredLayers("profile", names, (gpu,) * len(rows), batches, one, time, back, 0 * time, weights, kept, sent)


def _sums(block: IntArray, amounts: FloatArray) -> FloatArray:
    return np.bincount(block[block >= 0], amounts[block >= 0]).astype(float)


def _blocks(graph: OpGraph) -> IntArray:
    """Return the block of each forward op, -1 of backward ones, int32 (n,)."""
    if not graph.backward.any() or (graph.twin[graph.backward] < 0).any():
        raise InstanceError("graphs", "has no backward pass of each op: profile the training")
    order = [op for op in graph.topological_order() if not graph.backward[op]]
    place = np.full(graph.n_ops, -1)
    place[order] = np.arange(len(order))
    ahead = (place[graph.source] >= 0) & (place[graph.target] >= 0)
    last = place.copy()
    np.maximum.at(last, graph.source[ahead], place[graph.target[ahead]])
    crossing = np.zeros(len(order) + 1, dtype=int)  # outputs that are passed on behind each op
    np.add.at(crossing, place[order], 1)
    np.add.at(crossing, last[order], -1)
    cut = np.cumsum(crossing)[: len(order) - 1] == 1
    if not cut.any():
        raise InstanceError("graphs", "nowhere one output alone is passed on: there is no chain of layers")
    block = np.full(graph.n_ops, -1, dtype=np.int32)
    block[order] = np.concatenate([[0], np.cumsum(cut)])
    return block
