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

FAR = 1e9
"""Features are within this where it is not known what they are like in training."""


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


class CompiledNetwork(NamedTuple):
    """Weights of `GraphNetwork`, of width w: L rounds, T kinds, R relations, F features of the widest kind.

    Attributes:
        enter, enter_bias: float32 (T, F, w), (T, w).
        own, own_bias: float32 (L, T, w, w), (L, T, w).
        message: float32 (L, R, w, w).
        head, head_bias, last: float32 (w, w), (w,), (w, outputs).
        ends: see `Schema.ends`.
        scored: the kind that gets scores, int64 (1,).
        low, high: between which features were in training, float32 (T, F).
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
    low: Singles2
    high: Singles2


def shapes(
    schema: Schema, width: int, rounds: int, messages: bool = True, *, ranged: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a `GraphNetwork` by its name."""
    of = {"head.weight": (width, width), "head.bias": (width,), "last.weight": (schema.outputs, width)}
    for kind, names in schema.kinds.items():
        of |= {f"enter.{kind}.weight": (width, len(names)), f"enter.{kind}.bias": (width,)}
        of |= {f"range_{kind}": (2, len(names))} if ranged else {}
        for i in range(rounds):
            of |= {f"own.{i}.{kind}.weight": (width, width), f"own.{i}.{kind}.bias": (width,)}
    told = range(len(schema.relations) if messages else 0)
    return of | {f"told.{i}.{j}.weight": (width, width) for i in range(rounds) for j in told}


def network_of(schema: Schema, tensors: Mapping[str, NDArray[np.float32]]) -> CompiledNetwork:
    """Return the weights of a `GraphNetwork` as compiled code has them, given its tensors by name; see `shapes`."""
    kinds, width = list(schema.kinds), len(tensors["head.bias"])
    rounds = sum(name.startswith("own.") for name in tensors) // (2 * len(kinds))
    enter = np.zeros((len(kinds), schema.width, width), np.float32)
    own = np.zeros((rounds, len(kinds), width, width), np.float32)
    own_bias = np.zeros((rounds, len(kinds), width), np.float32)
    message = np.zeros((rounds, len(schema.relations), width, width), np.float32)
    low, high = (np.full((len(kinds), schema.width), sign * FAR, np.float32) for sign in (-1, 1))
    for k, kind in enumerate(kinds):
        if f"range_{kind}" in tensors:
            low[k, : len(schema.kinds[kind])], high[k, : len(schema.kinds[kind])] = tensors[f"range_{kind}"]
        enter[k, : len(schema.kinds[kind])] = tensors[f"enter.{kind}.weight"].T
        for i in range(rounds):
            own[i, k], own_bias[i, k] = tensors[f"own.{i}.{kind}.weight"].T, tensors[f"own.{i}.{kind}.bias"]
    for i, j in np.ndindex(message.shape[:2]):
        if f"told.{i}.{j}.weight" in tensors:
            message[i, j] = tensors[f"told.{i}.{j}.weight"].T
    bias = np.stack([tensors[f"enter.{kind}.bias"] for kind in kinds])
    head, last = (np.ascontiguousarray(tensors[f"{name}.weight"].T) for name in ("head", "last"))
    scored = np.array([kinds.index(schema.scored)])
    return CompiledNetwork(
        enter, bias, own, own_bias, message, head, tensors["head.bias"], last, schema.ends, scored, low, high
    )


def widened(
    tensors: Mapping[str, NDArray[np.float32]], wanted: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[np.float32]]:
    """Return tensors of a network that was trained with the first features of each kind; the others do not count."""

    def wide(name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
        more = wanted.get(name, x.shape)[-1] - x.shape[-1] if name.startswith(("enter.", "range_")) else 0
        if more <= 0:
            return x
        beside = np.full((len(x), more), FAR if name.startswith("range_") else 0.0, np.float32)
        beside[0] *= -1
        return np.concatenate([x, beside], axis=1)

    return {name: wide(name, x) if x.ndim == 2 else x for name, x in tensors.items()}


def room(schema: Schema, nodes: int, edges: int) -> Graph:
    """Return room for a graph of at most so many nodes and edges."""
    return Graph(
        np.zeros((nodes, schema.width), np.float32), np.zeros(len(schema.kinds) + 1, np.int64),
        np.zeros(edges, np.int64), np.zeros(edges, np.int64), np.zeros(edges, np.float32),
        np.zeros(len(schema.relations) + 1, np.int64),
    )  # fmt: skip


BESIDE, LEAST = 0.5, 0.25
"""How far outside a range is still like what was trained on: so many times its width, and at least so much."""


@inner
def strange(graph: Graph, net: CompiledNetwork) -> int:
    """Return kind * widest + feature of the first number that is unlike any in training, -1 if there is none."""
    for kind in range(len(graph.kind) - 1):
        for j in range(net.low.shape[1]):
            low, high = net.low[kind, j], net.high[kind, j]
            slack = BESIDE * (high - low) + LEAST
            for i in range(graph.kind[kind], graph.kind[kind + 1]):
                if not low - slack <= graph.x[i, j] <= high + slack:
                    return int(kind * net.low.shape[1] + j)
    return -1


@inner
def encode(graph: Graph, net: CompiledNetwork) -> Singles2:
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
def _round(graph: Graph, net: CompiledNetwork, h: Singles2, layer: int) -> Singles2:
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
def scores(graph: Graph, net: CompiledNetwork) -> Singles2:
    """Return the scores of the nodes of the kind that gets some, float32 (nodes, outputs)."""
    h = encode(graph, net)
    shown = h[graph.kind[net.scored[0]] : graph.kind[net.scored[0] + 1]]
    x = np.dot(shown, net.head)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + net.head_bias[j], np.float32(0))
    return np.dot(x, net.last)


@kernel
def score(graph: Graph, net: CompiledNetwork) -> Singles2:
    """Do what `scores` does, for Python."""
    return scores(by_reference(graph), by_reference(net))
