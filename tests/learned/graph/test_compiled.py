"""The compiled network is that of PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.graph.compiled import Graph, room, score, shapes, strange
from gangplan.learned.graph.schema import Schema
from gangplan.learned.training.network import GraphNetwork, Packed

Graphs = Callable[[int, int], tuple[Schema, list[Graph]]]


def by_torch(network: GraphNetwork, graph: Graph) -> np.ndarray:
    """Return the scores of PyTorch Geometric."""
    with torch.no_grad():
        return network(Packed(network.schema, [graph]).batch(np.array([0]))).numpy()


@pytest.mark.parametrize("messages", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_scores_are_those_of_torch(make_graphs: Graphs, make_network: Any, seed: int, messages: bool) -> None:
    """Of each node of the scored kind each output, whatever kinds have no nodes and relations no edges."""
    schema, graphs = make_graphs(seed, 4)
    network = make_network(schema, seed, messages=messages)
    for graph in graphs:
        ours, theirs = score(graph, network.compiled()), by_torch(network, graph)
        assert ours.shape == theirs.shape == (np.diff(graph.kind)[[*schema.kinds].index(schema.scored)], schema.outputs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * (1 + np.abs(theirs).max(initial=0)))


def test_what_the_tests_draw(make_graphs: Graphs) -> None:
    """There are relations without edges, kinds without nodes, several outputs, and edges within a kind among them."""
    drawn = [make_graphs(seed, 4) for seed in range(12)]
    assert any((np.diff(g.relation) == 0).any() and g.relation[-1] > 0 for _, graphs in drawn for g in graphs)
    assert any((np.diff(g.kind) == 0).any() and g.kind[-1] > 0 for _, graphs in drawn for g in graphs)
    assert any(schema.outputs > 1 for schema, _ in drawn)
    assert any(a == b and g.relation[-1] > 0 for schema, (g, *_) in drawn for a, b in schema.ends)


def test_messages_matter(make_network: Any) -> None:
    """Other neighbours, and other weights of edges, change scores; without messages nothing of that does."""
    schema = Schema({"a": ("x",), "b": ("y", "z")}, (("b", "to", "a"),), "a")
    for messages in (True, False):
        network = make_network(schema, 3, messages=messages).compiled()
        graph = room(schema, 4, 2)
        graph.x[:] = [[1, 0], [2, 0], [3, 4], [-5, 6]]
        graph.kind[:], graph.relation[:] = (0, 2, 4), (0, 2)
        graph.source[:], graph.target[:], graph.weight[:] = (2, 3), (0, 1), 1.0
        before = score(graph, network)
        for field, value in (("source", np.array([3, 3])), ("weight", np.array([0.5, 1.0], np.float32))):
            after = score(graph.replace(**{field: value}), network)
            assert (after[0] != before[0]).all() == messages
            assert (after[1] == before[1]).all()


@pytest.mark.parametrize("messages", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_shapes_are_those_of_the_module(make_graphs: Graphs, make_network: Any, seed: int, messages: bool) -> None:
    """By name, and each number has its place in the arrays of compiled code."""
    schema, _ = make_graphs(seed, 0)
    network = make_network(schema, seed, messages=messages)
    tensors = network.state_dict()
    expected = {name: tuple(x.shape) for name, x in tensors.items()}
    assert shapes(schema, network.width, len(network.own), messages, ranged=True) == expected
    total = sum(float(x.double().abs().sum()) for x in tensors.values())
    arrays = network.compiled().arrays()
    for name in ("low", "high"):  # what no kind has is as wide as can be
        for kind, names in enumerate(schema.kinds.values()):
            arrays[name][kind, len(names) :] = 0
    assert (arrays["low"] <= 0).all() and (arrays["high"] >= 0).all()
    for name in ("ends", "scored"):
        del arrays[name]
    assert sum(np.abs(x.astype(np.float64)).sum() for x in arrays.values()) == pytest.approx(total)
    assert all(x.dtype == np.float32 and x.flags.c_contiguous for x in arrays.values())


def test_a_narrow_kind_reads_its_own_features_only(make_network: Any) -> None:
    """What stands in the columns beyond those of a kind is not read."""
    schema = Schema({"a": ("x",), "b": ("y", "z", "w")}, (), "a")
    network = make_network(schema, 2).compiled()
    graph = room(schema, 1, 0)
    graph.kind[:] = (0, 1, 1)
    before = score(graph, network)
    graph.x[0, 1:] = 7
    assert (score(graph, network) == before).all()


def test_what_is_unlike_training_is_found(make_network: Any) -> None:
    """The first feature that is more than half a range and a quarter outside, or NaN; not behind the last node."""
    schema = Schema({"a": ("x",), "b": ("y", "z")}, (), "a")
    module = make_network(schema, 1)
    module.note_ranges({"a": np.array([[0], [4]], np.float32), "b": np.array([[1, 0], [1, 9]], np.float32)})
    network = module.compiled()
    graph = room(schema, 4, 0)
    graph.kind[:] = (0, 1, 3)
    graph.x[:] = [[4, 0], [1, 3], [1, 3], [99, 99]]
    assert strange(graph, network) == -1
    for row, at, near, far, name in (
        (0, 0, 6.24, 6.26, "a.x"), (0, 0, -2.24, -2.26, "a.x"), (1, 0, 1.24, 1.26, "b.y"),
        (2, 1, 13.7, 13.8, "b.z"), (2, 1, -4.7, np.nan, "b.z"),
    ):  # fmt: skip
        before = graph.x[row, at]
        graph.x[row, at] = near
        assert strange(graph, network) == -1
        graph.x[row, at] = far
        assert schema.feature(strange(graph, network)) == name
        graph.x[row, at] = before
