"""Random graphs: layers, series and parallel, micro-batches through stages and back."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import InstanceError, OpGraph, dump, load
from gangplan.instances.generators import generate

from ...seeds import examples


@settings(max_examples=examples(30))
@given(st.integers(1, 60), st.integers(1, 10), st.floats(1, 3), st.integers(0, 99))
def test_layered_shape(ops: int, layers: int, degree: float, seed: int) -> None:
    """A layered graph has its ops, and its longest path is one op of each layer."""
    if layers > ops or degree > ops:
        with pytest.raises(InstanceError):
            generate("layered", ops=ops, layers=layers, degree=degree)
        return
    graph = generate("layered", ops=ops, layers=layers, degree=degree, seed=seed, training=False).graph
    assert graph.n_ops == ops
    depth = np.ones(ops, dtype=int)
    for u, v in sorted(zip(graph.source.tolist(), graph.target.tolist(), strict=True), key=lambda e: e[1]):
        depth[v] = max(depth[v], depth[u] + 1)
    assert depth.max() == layers


@settings(max_examples=examples(40))
@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 99))
def test_series_parallel_graphs_are(ops: int, series: float, seed: int) -> None:
    """Reductions in series and in parallel take the graph back to one edge."""
    graph = generate("series_parallel", ops=ops, series=series, seed=seed, training=False).graph
    assert graph.n_ops == ops
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert reduced(edges) == ([(0, ops - 1)] if ops > 1 else [])


def reduced(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is left of the edges when series and parallel reductions are done."""
    left = set(edges)
    while True:
        into, out = Counter(v for _, v in left), Counter(u for u, _ in left)
        w = next((w for w in into if into[w] == out[w] == 1), None)
        if w is None:
            return sorted(left)
        u, v = next(u for u, x in left if x == w), next(v for x, v in left if x == w)
        left = (left - {(u, w), (w, v)}) | {(u, v)}


def test_reduction_finds_what_is_not_series_parallel() -> None:
    """The smallest graph that is not series-parallel, a bridge between two branches, stays as it is."""
    bridge = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert reduced(bridge) == bridge


def test_series_parallel_extremes() -> None:
    """Steps in series alone make a chain; none in series leaves an edge from end to end."""
    chain = generate("series_parallel", ops=30, series=1, training=False).graph
    assert chain.source.tolist() == list(range(29))
    assert chain.target.tolist() == list(range(1, 30))
    wide = generate("series_parallel", ops=30, series=0, training=False).graph
    assert wide.n_edges == 2 * 28 + 1
    assert (0, 29) in set(zip(wide.source.tolist(), wide.target.tolist(), strict=True))


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


def test_equal_stages_of_no_spread() -> None:
    """A pipeline survives JSON, and its stages are equal where there is no spread."""
    problem = generate("pipeline", stages=2)
    assert dump(load(dump(problem))) == dump(problem)
    assert len(np.unique(generate("pipeline", spread=0, training=False).graph.time)) == 1
