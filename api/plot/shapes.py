"""The graph as shapes: a dot an op with its edges, or for large graphs a block for the ops of a device at a depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import OpGraph

from .layout import BoolArray, FloatArray, IntArray

BLOCK_COLUMNS = 72
CURVE = np.linspace(0.0, 1.0, 17)
SHORT = 4
"""Characters of an op's name that fit into its dot."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges; N nodes.

    Attributes:
        dots: whether a node is an op, drawn as a dot; otherwise it is a block of ops.
        x, y: float (N,), the centre of each node.
        height: float (N,), of a block.
        device: int (N,).
        texts: what a node is, for a pointer that rests on it.
        labels: names that fit into the dots, or empty.
        inner: polylines of edges inside a device, float (., points, 2).
        cut: polylines of edges between devices; of blocks, one for all edges between two devices.
        weight: int (cut,), how many edges each of them stands for.
        anchors: float (., 2), where those of blocks start and end: the middle of a device's ops.
        anchor_device: int (.,), the device of each anchor.
        halves: whether there is a backward half below zero.
    """

    dots: bool
    x: FloatArray
    y: FloatArray
    height: FloatArray
    device: IntArray
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    inner: FloatArray
    cut: FloatArray
    weight: IntArray
    anchors: FloatArray
    anchor_device: IntArray
    halves: bool


def dots(graph: OpGraph, column: IntArray, y: FloatArray, device: IntArray, texts: tuple[str, ...]) -> Drawing:
    """Draw each op as a dot."""
    x = column.astype(np.float64)
    u, v = graph.source, graph.target
    curves = _curves(np.stack([x[u], y[u]], axis=1), np.stack([x[v], y[v]], axis=1), graph.backward[u])
    is_cut = device[u] != device[v]
    short = max(map(len, graph.names)) <= SHORT and x.max() < BLOCK_COLUMNS / 2
    return Drawing(
        dots=True,
        x=x,
        y=y,
        height=np.ones(graph.n_ops),
        device=device,
        texts=texts,
        labels=graph.names if short else (),
        inner=curves[~is_cut],
        cut=curves[is_cut],
        weight=np.ones(int(is_cut.sum()), dtype=np.int64),
        anchors=np.zeros((0, 2)),
        anchor_device=np.zeros(0, dtype=np.int64),
        halves=bool(graph.backward.any()),
    )


def blocks(graph: OpGraph, column: IntArray, device: IntArray) -> Drawing:
    """Draw the ops of a device that lie at about the same depth as one block, as high as they are many."""
    width = max(1.0, (column.max() + 1) / BLOCK_COLUMNS)
    bin_of = (column / width).astype(np.int64)
    back = graph.backward.astype(np.int64)
    many = int(device.max()) + 1
    cell, node, count = np.unique((bin_of * 2 + back) * many + device, return_inverse=True, return_counts=True)
    side, x = cell // many % 2, (cell // many // 2 + 0.5) * width - 0.5
    height = count.astype(np.float64)
    # cells come sorted by column, half and device: heights below a cell are those of its pile before it
    before = np.concatenate([[0.0], np.cumsum(height)[:-1]])
    _, first, members = np.unique(cell // many, return_index=True, return_counts=True)
    middle = before - np.repeat(before[first], members) + height / 2
    gap = 0.06 * height.max() if back.any() else 0.0
    y = np.where(side == 1, -middle - gap, middle + gap)
    # one anchor for each half of each device, at the middle of its ops
    group, op_group, members = np.unique(side[node] * many + device, return_inverse=True, return_counts=True)
    anchors = np.stack([np.bincount(op_group, weights=w[node]) / members for w in (x, y)], axis=1)
    is_cut = device[graph.source] != device[graph.target]
    ends = np.stack([op_group[graph.source], op_group[graph.target]])[:, is_cut]
    pairs, weight = np.unique(ends, axis=1, return_counts=True)
    start, end = anchors[pairs[0]], anchors[pairs[1]]
    arch = 0.12 * height.max() * np.sqrt(np.abs(end[:, 0] - start[:, 0]) / (x.max() + 1)) * 2
    return Drawing(
        dots=False,
        x=x,
        y=y,
        height=height,
        device=cell % many,
        texts=tuple(
            f"{n} {'backward' if s else 'forward'} ops" for n, s in zip(count.tolist(), side.tolist(), strict=True)
        ),
        labels=(),
        inner=np.zeros((0, 2, 2)),
        cut=_arched(start, end, np.where(group[pairs[0]] >= many, -arch, arch)),
        weight=weight.astype(np.int64),
        anchors=anchors,
        anchor_device=group % many,
        halves=bool(back.any()),
    )


def _curves(start: FloatArray, end: FloatArray, down: BoolArray) -> FloatArray:
    """Return polylines (m, points, 2): straight to a neighbour, arched over what lies between otherwise."""
    span = np.abs(end[:, 0] - start[:, 0])
    arch = np.where(span > 1, 0.26 + 0.22 * np.sqrt(span), 0.0)
    return _arched(start, end, np.where(down, -arch, arch))


def _arched(start: FloatArray, end: FloatArray, arch: FloatArray) -> FloatArray:
    """Return parabolas (m, points, 2) from `start` to `end` that rise `arch` above the straight line."""
    t = CURVE[None, :, None]
    line: FloatArray = start[:, None, :] * (1 - t) + end[:, None, :] * t
    line[:, :, 1] += (4 * CURVE * (1 - CURVE))[None, :] * arch[:, None]
    return line
