"""The graph network in compiled code, without torch: typed nodes in one array, edges relation by relation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.solvers.compiled.kernel import (
    Ints,
    Ints2,
    Singles,
    Singles2,
    Singles3,
    Singles4,
    by_reference,
    inner,
    kernel,
)

from .schema import Schema


class Graph(NamedTuple):
    """A graph, or room for one: arrays may be longer than what counts.

    Attributes:
        x: features of the nodes, kind by kind, 0 beyond those of the kind, float32 (nodes, widest).
        kind: the first node of each kind, and how many nodes there are, int64 (kinds + 1,).
        source, target: nodes, by their place in `x`, int64 (edges,).
        weight: times which a message counts, float32 (edges,).
        relation: the first edge of each relation, and how many edges there are, int64 (relations + 1,).
    """

    x: Singles2
    kind: Ints
    source: Ints
    target: Ints
    weight: Singles
    relation: Ints


class Network(NamedTuple):
    """Weights of `GraphNetwork`, of width w: L rounds, T kinds, R relations, F features of the widest kind.

    Attributes:
        enter, enter_bias: float32 (T, F, w), (T, w).
        own, own_bias: float32 (L, T, w, w), (L, T, w).
        message: float32 (L, R, w, w).
        head, head_bias, last: float32 (w, w), (w,), (w, outputs).
        ends: see `Schema.ends`.
        scored: the kind that gets scores, int64 (1,).
    """

    enter: Singles3
    enter_bias: Singles2
    own: Singles4
    own_bias: Singles3
    message: Singles4
    head: Singles2
    head_bias: Singles
    last: Singles2
    ends: Ints2
    scored: Ints


def room(schema: Schema, nodes: int, edges: int) -> Graph:
    """Return room for a graph of at most so many nodes and edges."""
    return Graph(
        np.zeros((nodes, schema.width), np.float32), np.zeros(len(schema.kinds) + 1, np.int64),
        np.zeros(edges, np.int64), np.zeros(edges, np.int64), np.zeros(edges, np.float32),
        np.zeros(len(schema.relations) + 1, np.int64),
    )  # fmt: skip


def shapes(schema: Schema, width: int, rounds: int, messages: bool) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a `GraphNetwork`, by its name."""
    kinds, found = schema.kinds, dict[str, tuple[int, ...]]()
    for kind, names in kinds.items():
        found |= {f"enter.{kind}.weight": (width, len(names)), f"enter.{kind}.bias": (width,)}
    for i in range(rounds):
        for kind in kinds:
            found |= {f"own.{i}.{kind}.weight": (width, width), f"own.{i}.{kind}.bias": (width,)}
        found |= {f"told.{i}.{j}.weight": (width, width) for j in range(len(schema.relations)) if messages}
    head = {"head.weight": (width, width), "head.bias": (width,)}
    return found | head | {"last.weight": (schema.outputs, width)}


def network_of(schema: Schema, tensors: Mapping[str, NDArray[np.float32]]) -> Network:
    """Return the weights of a `GraphNetwork` from its tensors by name; without messages these are 0."""
    kinds, width = list(schema.kinds), len(tensors["head.bias"])
    rounds = sum(name.startswith("own.") for name in tensors) // (2 * len(kinds))
    enter = np.zeros((len(kinds), schema.width, width), np.float32)
    for i, (kind, names) in enumerate(schema.kinds.items()):
        enter[i, : len(names)] = tensors[f"enter.{kind}.weight"].T
    told = np.zeros((rounds, len(schema.relations), width, width), np.float32)
    for i in range(rounds):
        for j in range(len(schema.relations)):
            if f"told.{i}.{j}.weight" in tensors:
                told[i, j] = tensors[f"told.{i}.{j}.weight"].T

    def stacked(name: str) -> NDArray[np.float32]:
        return np.array([[tensors[f"own.{i}.{kind}.{name}"].T for kind in kinds] for i in range(rounds)], np.float32)

    return Network(
        enter, np.array([tensors[f"enter.{kind}.bias"] for kind in kinds], np.float32), stacked("weight"),
        stacked("bias"), told, np.array(tensors["head.weight"].T, np.float32, order="C"),
        np.array(tensors["head.bias"], np.float32), np.array(tensors["last.weight"].T, np.float32, order="C"),
        schema.ends, np.array([kinds.index(schema.scored)]),
    )  # fmt: skip


@inner
def encode(graph: Graph, net: Network) -> Singles2:
    """Return what the network makes of each node after its rounds, float32 (nodes, w)."""
    kinds, width = len(graph.kind) - 1, net.enter.shape[2]
    h = np.zeros((graph.kind[kinds], width), np.float32)
    for kind in range(kinds):
        low, high = graph.kind[kind], graph.kind[kind + 1]
        if low < high:
            h[low:high] = np.dot(graph.x[low:high], net.enter[kind])
            for i in range(low, high):
                for j in range(width):
                    h[i, j] = max(h[i, j] + net.enter_bias[kind, j], np.float32(0))
    for layer in range(len(net.own)):
        new = _round(graph, net, h, layer)
        for i in range(len(h)):
            for j in range(width):
                h[i, j] += max(new[i, j], np.float32(0))
    return h


@inner
def _round(graph: Graph, net: Network, h: Singles2, layer: int) -> Singles2:
    new, width = np.empty_like(h), h.shape[1]
    for kind in range(len(graph.kind) - 1):
        low, high = graph.kind[kind], graph.kind[kind + 1]
        if low < high:
            new[low:high] = np.dot(h[low:high], net.own[layer, kind])
            for i in range(low, high):
                for j in range(width):
                    new[i, j] += net.own_bias[layer, kind, j]
    for relation in range(len(graph.relation) - 1):
        begin, end = graph.relation[relation], graph.relation[relation + 1]
        if begin == end:
            continue
        low, high = graph.kind[net.ends[relation, 1]], graph.kind[net.ends[relation, 1] + 1]
        heard = np.zeros((high - low, width), np.float32)
        for edge in range(begin, end):
            at, of, weight = graph.target[edge] - low, graph.source[edge], graph.weight[edge]
            for j in range(width):
                heard[at, j] += weight * h[of, j]
        told = np.dot(heard, net.message[layer, relation])
        for i in range(high - low):
            for j in range(width):
                new[low + i, j] += told[i, j]
    return new


@inner
def scores(graph: Graph, net: Network) -> Singles2:
    """Return the scores of the nodes of the kind that gets some, float32 (nodes, outputs)."""
    h = encode(graph, net)
    shown = h[graph.kind[net.scored[0]] : graph.kind[net.scored[0] + 1]]
    x = np.dot(shown, net.head)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + net.head_bias[j], np.float32(0))
    return np.dot(x, net.last)


@kernel
def score(graph: Graph, net: Network) -> Singles2:
    """Do what `scores` does, for Python."""
    return scores(by_reference(graph), by_reference(net))
