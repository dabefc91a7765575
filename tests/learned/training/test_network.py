"""The network begins as no correction at all, and can learn one; a minibatch is its graphs side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.graph.compiled import Graph, room, score
from gangplan.learned.graph.schema import Schema
from gangplan.learned.training.network import GraphNetwork, Packed


@pytest.mark.parametrize("seed", range(4))
def test_scores_begin_at_0(
    make_graphs: Callable[[int, int], tuple[Schema, list[Graph]]], one_thread: None, seed: int
) -> None:
    """In torch and compiled, and the first gradient is not 0."""
    schema, graphs = make_graphs(seed, 5)
    torch.manual_seed(seed)
    network = GraphNetwork(schema, 8, 2)
    scores = network(Packed(schema, graphs).batch(np.arange(5)))
    assert scores.numel() and not scores.any()
    assert all(not score(graph, network.compiled()).any() for graph in graphs)
    scores.sum().backward()
    assert network.last.weight.grad is not None and network.last.weight.grad.any()


@pytest.mark.parametrize(
    ("relations", "scored", "words"),
    [
        ((), "b", "scored: 'b' is not one of a"),
        ((("b", "to", "a"),), "a", r"relations\[0\]\[0\]: 'b' is not one of a"),
        ((("a", "to", "a"), ("a", "to", "b")), "a", r"relations\[1\]\[2\]: 'b' is not one of a"),
    ],
)
def test_a_schema_names_what_it_has_not(relations: tuple[tuple[str, str, str], ...], scored: str, words: str) -> None:
    """A kind that is not there is an error where it is named."""
    with pytest.raises(InstanceError, match=words):
        Schema({"a": ("x",)}, relations, scored)


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_has_the_scores_of_its_graphs(
    make_graphs: Callable[[int, int], tuple[Schema, list[Graph]]], make_network: Any, seed: int
) -> None:
    """In the order asked for, one that is there twice, too; `first` and `batch` say whose they are."""
    schema, graphs = make_graphs(seed, 7)
    network, packed = make_network(schema, seed), Packed(schema, graphs)
    chosen = np.array([5, 0, 3, 3, 6])
    batch = packed.batch(chosen)
    first = packed.first[schema.scored]
    place = [*schema.kinds].index(schema.scored)
    assert np.diff(first).tolist() == [g.kind[place + 1] - g.kind[place] for g in graphs]
    whose = np.repeat(np.arange(len(chosen)), np.diff(first)[chosen])
    assert (batch[schema.scored].batch.numpy() == whose).all()
    with torch.no_grad():
        together = network(batch).numpy()
        alone = [network(Packed(schema, [graphs[i]]).batch(np.array([0]))).numpy() for i in chosen]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-5, atol=1e-5)


def test_what_counts_is_copied(make_graphs: Callable[[int, int], tuple[Schema, list[Graph]]]) -> None:
    """Graphs may be written over once they are packed."""
    schema, graphs = make_graphs(1, 3)
    packed = Packed(schema, graphs)
    before = {kind: packed.batch(np.arange(3))[kind].x.clone() for kind in schema.kinds}
    assert sum(x.numel() for x in before.values()) > 0
    for graph in graphs:
        for array in graph.arrays().values():
            array[:] = 0
    assert all(torch.equal(packed.batch(np.arange(3))[kind].x, x) for kind, x in before.items())


def test_ranges() -> None:
    """The least and the largest of each feature over all graphs."""
    schema = Schema({"a": ("x",), "b": ("y", "z")}, (), "a")
    graphs = []
    for value in (1.0, -2.0):
        graph = room(schema, 2, 0)
        graph.kind[:] = (0, 1, 2)
        graph.x[:] = [[value, 9], [3 * value, 5]]
        graphs.append(graph)
    ranges = {kind: x.tolist() for kind, x in Packed(schema, graphs).ranges().items()}
    assert ranges == {"a": [[-2], [1]], "b": [[-6, 5], [3, 5]]}
