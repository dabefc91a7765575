"""The graph network in compiled code, without torch: typed nodes in one array, edges relation by relation.

Sums have one order, whatever the machine, so that scores are the same to the bit everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from numpy.typing import NDArray

from gangplan.simulator.gangs.arrays import Arrays

from .schema import Schema

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Single, Singles, Singles2

    BLOCK = 16
    """Numbers of a row that are summed up at once, in registers: widths are rounded up to a multiple, with zeros."""

FAR = 1e9
"""Features are within this where it is not known what they are like in training."""
BESIDE = declare(Float, 0.5)
LEAST = declare(Float, 0.25)
"""How far outside a range is still like what was trained on: so many times its width, and at least so much."""
ZERO = declare(Single, 0.0)


@final
@cclass
class Graph(Arrays):
    """A graph, or room for one: arrays may be longer than what counts.

    Attributes:
        x: features of the nodes, kind by kind, 0 beyond those of the kind, float32 (nodes, widest).
        kind: the first node of each kind, and how many nodes there are, int64 (kinds + 1,).
        source, target: nodes, by their place in `x`, int64 (edges,).
        weight: times which a message counts, float32 (edges,).
        relation: the first edge of each relation, and how many edges there are, int64 (relations + 1,).
    """

    def __init__(self, *arrays: Any) -> None:
        self.x, self.kind, self.source, self.target, self.weight, self.relation = arrays
        nodes, kinds, edges, *_, relations = map(len, arrays)
        names = "x", "kind", "source", "target", "weight", "relation"
        self.own(names, arrays, nodes, kinds, edges, edges, edges, relations)
        self.h = self.new = self.told = np.zeros((0, 0), np.float32)

    def make_room(self, net: CompiledNetwork) -> None:
        """Make room for what a network makes of the nodes; raise `ValueError` if it is one of other graphs."""
        found = (len(self.kind) - 1, len(self.relation) - 1, self.x.shape[1])
        if found != (wanted := (len(net.low), len(net.ends), net.low.shape[1])):
            raise ValueError(f"{found} kinds, relations and features are not the {wanted} of the network")
        shape = (len(self.x), max(net.head.shape[1], net.last.shape[1]))
        if (len(self.h), self.h.shape[1]) != shape:
            self.h, self.new, self.told = (np.zeros(shape, np.float32) for _ in range(3))


@final
@cclass
class CompiledNetwork(Arrays):
    """Weights of `GraphNetwork`, of width w: L rounds, T kinds, R relations, F features of the widest kind.

    Attributes:
        enter, enter_bias: float32 (T, F, w), (T, w).
        root, root_bias: of the nodes themselves, float32 (L, T, w, w), (L, T, w).
        message: float32 (L, R, w, w).
        head, head_bias, last: float32 (w, w), (w,), (w, outputs).
        ends: see `Schema.ends`.
        scored: the kind that gets scores, and how many, int64 (2,).
        low, high: between which features were in training, float32 (T, F).
    """

    def __init__(self, *arrays: Any) -> None:
        arrays = tuple(np.require(x, None, ["C", "W"]) for x in arrays)  # joblib's are read-only
        self.enter, self.enter_bias, self.root, self.root_bias, self.message, *rest = arrays
        self.head, self.head_bias, self.last, ends, scored, self.low, self.high = rest
        (t, f, w), (n, r), outputs = arrays[0].shape, arrays[4].shape[:2], rest[2].shape[1]
        self.ends, self.scored, self.nothing = ends, scored, np.zeros(max(w, outputs), np.float32)
        names = "enter enter_bias root root_bias message head head_bias last ends scored low high"
        vars(self).update(zip(names.split(), arrays, strict=True))
        of = [(t, f, w), (t, w), (n, t, w, w), (n, t, w), (n, r, w, w), (w, w), (w,), (w, outputs), (r, 2), (2,)]
        kinds = [*ends.ravel().tolist(), int(scored[0])]
        even = w % BLOCK == outputs % BLOCK == 0 <= min(kinds) <= max(kinds) < t and 0 <= scored[1] <= outputs
        if [x.shape for x in arrays] != [*of, (t, f), (t, f)] or not even:
            raise ValueError(f"shapes or kinds are not those of {t} kinds, {r} relations, {f} features, width {w}")


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
    kinds, relations, f = list(schema.kinds), range(len(schema.relations)), schema.width
    rounds = range(sum(name.startswith("own.") for name in tensors) // (2 * len(kinds)))
    w, outputs = (-(-n // BLOCK) * BLOCK for n in (len(tensors["head.bias"]), schema.outputs))
    own = [f"own.{i}.{kind}" for i in rounds for kind in kinds]
    low, high = (np.full((len(kinds), f), sign * FAR, np.float32) for sign in (-1, 1))
    for k, kind in enumerate(kinds):
        if f"range_{kind}" in tensors:
            low[k, : len(schema.kinds[kind])], high[k, : len(schema.kinds[kind])] = tensors[f"range_{kind}"]

    def put(names: list[str], outer: tuple[int, ...], *inner: int) -> NDArray[np.float32]:
        made = np.zeros((len(names), *inner), np.float32)
        for row, name in zip(made, names, strict=True):
            if name in tensors:
                row[tuple(map(slice, tensors[name].T.shape))] = tensors[name].T
        return made.reshape(*outer, *inner)

    return CompiledNetwork(
        put([f"enter.{kind}.weight" for kind in kinds], (len(kinds),), f, w),
        put([f"enter.{kind}.bias" for kind in kinds], (len(kinds),), w),
        put([f"{name}.weight" for name in own], (len(rounds), len(kinds)), w, w),
        put([f"{name}.bias" for name in own], (len(rounds), len(kinds)), w),
        put([f"told.{i}.{j}.weight" for i in rounds for j in relations], (len(rounds), len(relations)), w, w),
        put(["head.weight"], (), w, w), put(["head.bias"], (), w), put(["last.weight"], (), w, outputs), schema.ends,
        np.array([kinds.index(schema.scored), schema.outputs]), low, high,
    )  # fmt: skip


def room(schema: Schema, nodes: int, edges: int) -> Graph:
    """Return room for a graph of at most so many nodes and edges."""
    return Graph(
        np.zeros((nodes, schema.width), np.float32), np.zeros(len(schema.kinds) + 1, np.int64),
        np.zeros(edges, np.int64), np.zeros(edges, np.int64), np.zeros(edges, np.float32),
        np.zeros(len(schema.relations) + 1, np.int64),
    )  # fmt: skip


def strange(g: Graph, net: CompiledNetwork) -> Int:
    """Return kind * widest + feature of the first number that is unlike any in training, -1 if there is none."""
    widest: Int = net.low.shape[1]
    for kind in range(len(net.low)):
        for j in range(widest):
            slack: Float = BESIDE * (net.high[kind, j] - net.low[kind, j]) + LEAST
            low: Float = net.low[kind, j] - slack
            high: Float = net.high[kind, j] + slack
            for i in range(g.kind[kind], g.kind[kind + 1]):
                if not low <= g.x[i, j] <= high:
                    return kind * widest + j
    return -1


def _multiply(a: Singles2, low: Int, high: Int, b: Singles2, start: Singles, out: Singles2, at: Int) -> None:
    """Write the rows of a from `low` to `high`, times b, to `out` from row `at` on; sums begin with `start`, if given.

    Else they are added to what is there; each has the order of the rows of b.
    """
    sums = declare(cython.float[16])
    for i in range(low, high):
        row: Int = at + i - low
        for part in range(b.shape[1] // BLOCK):
            begin: Int = part * BLOCK
            for j in range(BLOCK):
                sums[j] = start[begin + j] if len(start) else out[row, begin + j]
            for k in range(b.shape[0]):
                factor = a[i, k]
                for j in range(BLOCK):
                    sums[j] += factor * b[k, begin + j]
            for j in range(BLOCK):
                out[row, begin + j] = sums[j]


def _rectify(x: Singles2, low: Int, high: Int) -> None:
    """Let no number of these rows be below 0."""
    for i in range(low, high):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j], ZERO)


def _hear(g: Graph, net: CompiledNetwork, layer: Int, r: Int) -> None:
    """Add the messages of a relation; whichever are fewer are multiplied, the nodes that send or those that hear."""
    first, low = g.kind[net.ends[r, 0]], g.kind[net.ends[r, 1]]
    senders: Int = g.kind[net.ends[r, 0] + 1] - first
    hearers: Int = g.kind[net.ends[r, 1] + 1] - low
    if senders < hearers:
        _multiply(g.h, first, first + senders, net.message[layer, r], net.nothing, g.told, 0)
        for edge in range(g.relation[r], g.relation[r + 1]):
            for j in range(net.head.shape[1]):
                g.new[g.target[edge], j] += g.weight[edge] * g.told[g.source[edge] - first, j]
        return
    for i in range(hearers):
        for j in range(net.head.shape[1]):
            g.told[i, j] = ZERO
    for edge in range(g.relation[r], g.relation[r + 1]):
        for j in range(net.head.shape[1]):
            g.told[g.target[edge] - low, j] += g.weight[edge] * g.h[g.source[edge], j]
    _multiply(g.told, 0, hearers, net.message[layer, r], net.nothing[:0], g.new, low)


def scores(g: Graph, net: CompiledNetwork) -> None:
    """Write the scores of the nodes of the kind that gets some into the first rows of `told`."""
    kinds, low, high = len(net.low), g.kind[net.scored[0]], g.kind[net.scored[0] + 1]
    for k in range(kinds):
        _multiply(g.x, g.kind[k], g.kind[k + 1], net.enter[k], net.enter_bias[k], g.h, g.kind[k])
    _rectify(g.h, 0, g.kind[kinds])
    for layer in range(len(net.root)):
        for k in range(kinds):
            _multiply(g.h, g.kind[k], g.kind[k + 1], net.root[layer, k], net.root_bias[layer, k], g.new, g.kind[k])
        for r in range(len(net.ends)):
            if g.relation[r] < g.relation[r + 1]:
                _hear(g, net, layer, r)
        for i in range(g.kind[kinds]):
            for j in range(net.head.shape[1]):
                g.h[i, j] += max(g.new[i, j], ZERO)
    _multiply(g.h, low, high, net.head, net.head_bias, g.new, low)
    _rectify(g.new, low, high)
    _multiply(g.new, low, high, net.last, net.nothing, g.told, 0)


def _fits(g: Graph, net: CompiledNetwork) -> bool:
    """Return whether nodes and edges are where they can be."""
    fits: bint = g.kind[0] == 0 and g.kind[len(net.low)] <= len(g.x) and g.relation[0] == 0
    for k in range(len(net.low)):
        fits = fits and g.kind[k] <= g.kind[k + 1]
    for r in range(len(net.ends)):
        a, b = net.ends[r, 0], net.ends[r, 1]
        fits = fits and g.relation[r] <= g.relation[r + 1] <= len(g.source)
        for edge in range(g.relation[r], g.relation[r + 1] if fits else 0):
            fits = fits and g.kind[a] <= g.source[edge] < g.kind[a + 1] and g.kind[b] <= g.target[edge] < g.kind[b + 1]
    return fits


def score(g: Graph, net: CompiledNetwork) -> NDArray[np.float32]:
    """Return the scores of the nodes of the kind that gets some, float32 (nodes, outputs)."""
    g.make_room(net)
    if not _fits(g, net):
        raise ValueError("kinds or edges of the graph are not those of its nodes")
    with nogil:
        scores(g, net)
    return np.asarray(g.told)[: g.kind[net.scored[0] + 1] - g.kind[net.scored[0]], : net.scored[1]].copy()
