"""PAC-ML's partition rule: sizes by hand, and what every split conserves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError, OpGraph
from gangplan.instances.arrays import IntArray, ranges
from gangplan.instances.generators import generate
from gangplan.instances.graph import with_backward
from gangplan.instances.readers import parse, read
from gangplan.instances.readers.pipedream import listed_order
from gangplan.instances.splitting import SplitGraph, split, split_copies

PROFILE = """\
node3 -- Linear -- forward_compute_time=4.0, backward_compute_time=8.0, activation_size=300.0, parameter_size=100.0
node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=60.0, parameter_size=0.0
node2 -- Conv -- forward_compute_time=0.07, backward_compute_time=0.2, activation_size=200.0, parameter_size=40.0
\tnode1 -- node2
\tnode2 -- node3
"""


def profile() -> OpGraph:
    """Return the training graph of a chain of three ops whose file lists the last one first."""
    return parse(PROFILE, keep_inputs=True).graph


def random_graph(seed: int) -> OpGraph:
    """Return a training graph of up to eight forward ops of 0 to 0.2 ms."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.4]
    source, target = (np.array([p[i] for p in pairs], dtype=np.int32) for i in (0, 1))
    memory = rng.integers(0, 1000, n).astype(float)
    forward = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=("gpu",),
        time=rng.integers(0, 20, (1, n)) * 1e-5,
        memory=memory,
        parameter_bytes=memory / 4,
        activation_bytes=memory / 2,
        source=source,
        target=target,
        edge_bytes=memory[source],
    )
    return with_backward(forward, rng.integers(0, 20, (1, n)) * 1e-5, memory)


GRAPHS = st.integers(0, 2**32 - 1).map(random_graph)
DEGREES = st.sampled_from([1, 2, 4, 6, 8, 10, 16])


@pytest.mark.parametrize(
    ("milliseconds", "copies"),
    [(0.0, 1), (0.004, 2), (0.01, 2), (0.0201, 4), (0.06, 6), (0.0600001, 6), (0.061, 8), (0.07, 8), (0.08, 8), (1, 8)],
)
def test_copies_of_one_op(milliseconds: float, copies: int) -> None:
    """An op gives two sub-ops for each two quanta begun, at most the degree; one that takes no time is not split.

    A time within 1e-6 of a multiple of the quantum counts as that multiple.
    """
    one = with_backward(
        OpGraph(
            names=("a",),
            device_types=("gpu",),
            time=np.array([[milliseconds * 1e-3 if milliseconds != 0.0600001 else 6e-5 * (1 + 1e-9)]]),
            **{f: np.ones(1) for f in ("memory", "parameter_bytes", "activation_bytes")},
            **{f: np.zeros(0) for f in ("source", "target", "edge_bytes")},
        ),
        np.array([[5e-3]]),
        np.ones(1),
    )
    assert split_copies(one, 8).tolist() == [copies, copies]


def test_split_by_hand() -> None:
    """The Input stays whole, its twin too; times, memory, edges and gradients of the others are divided."""
    s = split(profile(), 4)
    # node1, node2, node3, then their twins from the last to the first
    assert s.copies.tolist() == [1, 4, 4, 4, 4, 1]
    assert s.seconds.tolist() == pytest.approx([0, 0.0175e-3, 1e-3, 2e-3, 0.05e-3, 0])
    assert s.memory.tolist() == [60.0, 60.0, 100.0, 100.0, 60.0, 60.0]
    edges = list(zip(s.graph.source.tolist(), s.graph.target.tolist(), s.edge_bytes.tolist(), strict=True))
    # 1-2: only the target is split, mem(1)/4; 2-3: both, node2 first, mem(2)/16, and so the way back;
    # the last edge back: only its source is split, mem(1)/4; loss to its twin: mem(3)/16
    assert edges == [(0, 1, 15.0), (1, 2, 15.0), (4, 5, 15.0), (3, 4, 15.0), (2, 3, 25.0)]
    assert s.sync_bytes.tolist() == [0.0, 0.0, 0.0, 100.0, 60.0, 0.0]


def test_order_of_the_cuts_decides_edge_bytes() -> None:
    """Where both ends are split, the edge takes the memory of the end that is cut first, in the order of the file."""
    graph = profile()
    order = listed_order(PROFILE, graph)
    assert order.tolist() == [2, 0, 1]
    by_file = split(graph, 4, order=order)
    # node3 before node2: mem(3)/16 both ways; all else as before
    assert by_file.edge_bytes.tolist() == [15.0, 25.0, 15.0, 25.0, 25.0]
    assert split(graph, 4, order=np.array([2])).edge_bytes.tolist() == by_file.edge_bytes.tolist()


def expand(split: SplitGraph) -> OpGraph:
    """Return the graph of all sub-ops, ``<name>/<i>`` for sub-op i of an op that is split.

    Sub-op i of a backward op is the twin of sub-op i of its forward op, and the two share a colocation class. The
    gradient exchange between siblings goes both ways, so it is no part of an acyclic graph.
    """
    graph, copies, first = split.graph, split.copies, split.first
    op = np.repeat(np.arange(graph.n_ops), copies)
    index = np.arange(split.n_sub_ops) - first[op]
    twin = np.where(graph.twin[op] >= 0, first[graph.twin[op]] + index, -1)
    # classes of sub-ops: by the class of the op and the index of the sub-op
    colocation = np.full(len(op), -1)
    classed = graph.colocation[op] >= 0
    label = graph.colocation[op].astype(np.int64) * split.degree + index
    _, colocation[classed] = np.unique(label[classed], return_inverse=True)
    source, target, edge = replicated_edges(split)
    return OpGraph(
        names=tuple(
            f"{graph.names[i]}/{j}" if copies[i] > 1 else graph.names[i] for i, j in zip(op, index, strict=True)
        ),
        device_types=graph.device_types,
        time=graph.time[:, op] / copies[op],
        memory=split.memory[op],
        parameter_bytes=graph.parameter_bytes[op] / copies[op],
        activation_bytes=graph.activation_bytes[op] / copies[op],
        source=source,
        target=target,
        edge_bytes=split.edge_bytes[edge],
        colocation=colocation,
        twin=twin,
        backward=graph.backward[op],
    )


def replicated_edges(split: SplitGraph) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of each replicated edge and the edge it comes from: int32 (E,) each, edge by edge."""
    u, v = split.graph.source, split.graph.target
    wide = split.copies[v]
    count = split.copies[u] * wide
    edge = np.repeat(np.arange(len(u)), count)
    nth = ranges(0 * count, count)
    source = split.first[u[edge]] + nth // wide[edge]
    target = split.first[v[edge]] + nth % wide[edge]
    return source.astype(np.int32), target.astype(np.int32), edge.astype(np.int32)


@given(GRAPHS, DEGREES)
def test_split_conserves_compute_and_memory(graph: OpGraph, degree: int) -> None:
    """The sub-ops of each op add up to it; none is split beyond the degree; twins are split alike."""
    s = split(graph, degree)
    np.testing.assert_allclose(s.seconds * s.copies, graph.time[0], rtol=1e-15)
    np.testing.assert_allclose(s.memory * s.copies, graph.memory, rtol=1e-15)
    assert s.degree <= degree
    assert (s.copies == s.copies[graph.twin]).all()
    assert ((s.copies == 1) | (s.copies % 2 == 0)).all()


@given(GRAPHS, DEGREES)
def test_expansion_is_the_same_job(graph: OpGraph, degree: int) -> None:
    """Written out in full, ops, edges and bytes add up to those of the split, and twins mirror each other."""
    s = split(graph, degree)
    full = expand(s)
    assert full.n_ops == s.n_sub_ops
    replicas = s.copies[graph.source] * s.copies[graph.target]
    assert full.n_edges == replicas.sum()
    assert full.edge_bytes.sum() == pytest.approx((s.edge_bytes * replicas).sum())
    assert full.time.sum() == pytest.approx(graph.time.sum())
    assert full.memory.sum() == pytest.approx(graph.memory.sum())
    assert full.parameter_bytes.sum() == pytest.approx(graph.parameter_bytes.sum())
    assert (full.backward != full.backward[full.twin]).all()
    # a sub-op shares its class with its twin and nobody else
    assert (full.colocation == full.colocation[full.twin]).all()
    assert (np.bincount(full.colocation) == 2).all()


def test_expansion_by_hand() -> None:
    """Two ops in two parts each: four edges between them, in order, and the bytes that siblings exchange."""
    s = split(profile(), 2)
    full = expand(s)
    assert full.names[:5] == ("node1", "node2/0", "node2/1", "node3/0", "node3/1")
    ends = list(zip(full.source.tolist(), full.target.tolist(), strict=True))
    assert ends[:6] == [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4)]
    assert s.sync_bytes[s.sync_bytes > 0].tolist() == [200.0, 120.0]
    assert not split(profile(), 1).sync_bytes.any()


def test_degree_one_changes_nothing() -> None:
    """At degree 1 the expansion has the times, memory and edges of the graph."""
    graph = profile()
    full = expand(split(graph, 1))
    assert full.names == graph.names
    for field in ("time", "memory", "source", "target", "twin", "colocation", "backward"):
        assert getattr(full, field).tolist() == getattr(graph, field).tolist()
    # an edge carries its source's memory, as in the paper, where the reader has the activations
    assert full.edge_bytes.tolist() == graph.memory[graph.source].tolist()


def test_other_graphs_split_too() -> None:
    """A generated transformer, without a PipeDream profile behind it, is split by the same rule."""
    s = split(generate("bert").graph, 4)
    assert set(s.copies.tolist()) <= {1, 2, 4}
    assert s.degree == 4


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"degree": 0}, "degree: 0 is not positive"),
        ({"degree": 3}, "degree: 3 is neither 1 nor even"),
        ({"degree": 2.0}, r"degree: 2\.0 is not a whole number"),
        ({"degree": -2}, "degree: -2 is not positive"),
        ({"degree": 2, "quantum": 0.0}, r"quantum: 0\.0 is not positive"),
        ({"degree": 2, "device_type": "V1"}, "device_type: 'V1' is not one of A100"),
        ({"degree": 2, "order": [0, 0]}, "order: an op occurs twice"),
        ({"degree": 2, "order": [9]}, r"order\[0\]: 9 is not one of the 6 ops"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], problem: str) -> None:
    """A bad argument is named with its value."""
    with pytest.raises(InstanceError, match=problem):
        split(profile(), **arguments)  # type: ignore[arg-type]


def test_bad_values_and_texts() -> None:
    """A split with no sub-op, and a listing of another graph, are refused."""
    graph, s = profile(), split(profile(), 2)
    with pytest.raises(InstanceError, match=r"copies\[1\]: 0 is not positive"):
        SplitGraph(graph, np.array([1, 0, 2, 2, 2, 1]), s.seconds, s.memory, s.edge_bytes, s.sync_bytes)
    with pytest.raises(InstanceError, match="text: lists no op of the graph"):
        listed_order("nodeX -- Conv\n", graph)


def test_slow_types_only() -> None:
    """An op that the deciding type cannot run is an error, not an infinite number of sub-ops."""
    graph = with_backward(
        OpGraph(
            names=("a",),
            device_types=("gpu", "cpu"),
            time=np.array([[np.inf], [1.0]]),
            **{f: np.ones(1) for f in ("memory", "parameter_bytes", "activation_bytes")},
            **{f: np.zeros(0) for f in ("source", "target", "edge_bytes")},
        ),
        np.ones((2, 1)),
        np.ones(1),
    )
    with pytest.raises(InstanceError, match=r"time\[0\]\[0\]: inf is not finite"):
        split(graph, 2)
    assert split(graph, 2, device_type="cpu").copies.tolist() == [2, 2]


def test_sizes_of_real_graphs(data: Path) -> None:
    """The five models of the paper have as many ops and edges as it lists, and steps as long."""
    expected = {
        "alexnet": (46, 47, 36.06115),
        "gnmt": (96, 117, 4.47080),
        "resnet18": (142, 159, 36.66835),
        "squeezenet1_0": (136, 153, 38.00015),
        "vgg16": (82, 83, 34.52535),
    }
    for model, (ops, edges, seconds) in expected.items():
        graph = read(data / "pipedream" / f"{model}.txt", keep_inputs=True).graph
        assert (graph.n_ops, graph.n_edges) == (ops, edges)
        assert graph.time.sum() * 50 == pytest.approx(seconds, abs=5e-8)
