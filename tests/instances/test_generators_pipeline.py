"""The pipeline generator: micro-batches through stages and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, OpGraph, dump, load
from gangplan.instances.generators import generate


def edges(graph: OpGraph) -> set[tuple[str, str]]:
    """Return the edges by name."""
    return {(graph.names[u], graph.names[v]) for u, v in zip(graph.source, graph.target, strict=True)}


def test_edges_of_a_small_pipeline() -> None:
    """Each of two micro-batches goes forward through two stages and back, on its own."""
    graph = generate("pipeline", stages=2, micro_batches=2).graph
    expected = set()
    for batch in ("batch0", "batch1"):
        way = [f"{batch}/{op}" for op in ("stage0", "stage1", "stage1/backward", "stage0/backward")]
        expected |= set(pairwise(way))
    assert edges(graph) == expected


def test_a_stage_is_one_class() -> None:
    """All that a stage does is colocated, takes as long for each micro-batch, and its weights count once."""
    graph = generate("pipeline", stages=3, micro_batches=4).graph
    one = generate("pipeline", stages=3, micro_batches=1).graph
    stage = np.array([int(name.split("/")[1].removeprefix("stage")) for name in graph.names])
    assert (graph.colocation == stage).all()
    assert (graph.time.reshape(4, -1) == one.time).all()
    assert graph.parameter_bytes.sum() == one.parameter_bytes.sum()
    copies = graph.memory.reshape(4, -1)
    assert (copies[0] == one.memory).all()
    assert (copies[1:] < one.memory).any() and (copies[1:] <= one.activation_bytes).all()


def test_forward_only() -> None:
    """Without training, micro-batches pass the stages once and stages stay together all the same."""
    graph = generate("pipeline", stages=3, micro_batches=2, training=False).graph
    assert graph.n_ops == 6
    assert graph.colocation.tolist() == [0, 1, 2, 0, 1, 2]


def test_seeds_and_documents() -> None:
    """One seed gives one problem, another another; equal stages come of no spread."""
    assert dump(generate("pipeline", seed=1)) == dump(generate("pipeline", seed=1)) != dump(generate("pipeline"))
    problem = generate("pipeline", stages=2)
    assert dump(load(dump(problem))) == dump(problem)
    assert len(np.unique(generate("pipeline", spread=0, training=False).graph.time)) == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"stages": 0}, "stages"),
        ({"micro_batches": 1.5}, "micro_batches"),
        ({"flops": 0}, "flops"),
        ({"intensity": -1}, "intensity"),
        ({"spread": -0.1}, "spread"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], field: str) -> None:
    """A wrong argument is an error that names it."""
    with pytest.raises(InstanceError) as caught:
        generate("pipeline", **options)
    assert caught.value.field == field
