"""Layers of a profiled model: a chain of blocks with what was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gangplan
from gangplan import InstanceError, LayoutProblem, OpGraph, gpu_pool
from gangplan.instances.graph import with_backward
from gangplan.instances.layout import profiled_layers


def residual(scale: float = 1.0) -> OpGraph:
    """Return in -> a -> add, in -> add -> out: two cuts, behind `in` and behind `add`."""
    time = np.array([[1.0, 2.0, 3.0, 4.0]]) * scale
    weights = np.array([40.0, 0.0, 8.0, 4.0])
    source, target, sizes = [0, 0, 1, 2], [1, 2, 2, 3], [7.0, 7.0, 5.0, 9.0]
    forward = OpGraph(
        ("in", "a", "add", "out"), ("A100",), time, 4 * weights + [1.0, 2.0, 3.0, 4.0], weights,
        np.array([7.0, 5.0, 9.0, 1.0]), np.array(source, np.int32), np.array(target, np.int32), np.array(sizes),
    )  # fmt: skip
    return with_backward(forward, 2 * time, np.zeros(4))


def test_blocks_end_where_one_output_is_passed_on() -> None:
    """Seconds, parameters and what is kept are sums of a block; what is sent is the one output."""
    layers = profiled_layers({1: residual(), 2: residual(2.0)}, "H100")
    assert layers.blocks == ("in", "a", "out")
    assert layers.micro_batch.tolist() == [1, 2]
    assert layers.forward.tolist() == [[1.0, 5.0, 4.0], [2.0, 10.0, 8.0]]
    assert layers.backward.tolist() == [[2.0, 10.0, 8.0], [4.0, 20.0, 16.0]]
    assert layers.weights.tolist() == [[10.0, 2.0, 1.0]] * 2
    assert layers.kept.tolist() == [[1.0, 5.0, 4.0]] * 2
    assert layers.sent.tolist() == [[7.0, 9.0, 0.0]] * 2


def test_a_generated_gpt_is_laid_out() -> None:
    """What a graph takes in all is what its layers take, and the best layout of them is proved."""
    graph = gangplan.generate("gpt").graph
    layers = profiled_layers({1: graph}, "H100")
    assert layers.forward.sum() == pytest.approx(graph.time[0][~graph.backward].sum())
    assert layers.backward.sum() == pytest.approx(graph.time[0][graph.backward].sum())
    problem = LayoutProblem(layers, (gpu_pool("H100", nodes=1),), batch=16, sequence=1024)
    assert gangplan.solve(problem, time_limit=60.0).status == "OPTIMAL"


@pytest.mark.parametrize(
    ("graphs", "device", "words"),
    [
        ({}, None, "graphs: there is none"),
        ({1: residual(), 2: replace(residual(), names=tuple("abcdefgh"))}, None, "graphs.2.: its 8 ops are not"),
        ({1: residual()}, "V100", "device: 'V100' is not one of A100"),
        ({1: gangplan.generate("gpt", training=False).graph}, None, "graphs: has no backward pass"),
    ],
)
def test_bad_profiles_are_refused(graphs: dict[int, OpGraph], device: str | None, words: str) -> None:
    """An error says what is wrong of which graph."""
    with pytest.raises(InstanceError, match=words):
        profiled_layers(graphs, "H100", device)
