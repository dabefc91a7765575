"""The network begins as no correction at all, and can learn one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.graph.compiled import Graph, score
from gangplan.learned.graph.network import GraphNetwork
from gangplan.learned.graph.packed import Packed
from gangplan.learned.graph.schema import Schema


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
