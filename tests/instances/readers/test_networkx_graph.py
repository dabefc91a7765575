"""To networkx and back."""

from __future__ import annotations

import json
from dataclasses import fields

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError, OpGraph
from gangplan.instances.devices import catalogue
from gangplan.instances.generators import generate
from gangplan.instances.readers import from_networkx, parse, to_networkx


def test_round_trip() -> None:
    """Every field of a graph survives the way to networkx and back, the order of ops included."""
    graph = generate("bert", layers=2).graph
    back = from_networkx(to_networkx(graph))
    order = np.lexsort((graph.target, graph.source))
    again = np.lexsort((back.target, back.source))
    for f in fields(OpGraph):
        before, after = getattr(graph, f.name), getattr(back, f.name)
        if f.name in ("source", "target", "edge_bytes"):
            before, after = before[order], after[again]
        assert np.array_equal(before, after), f.name


@given(st.integers(0, 1000), st.booleans())
def test_round_trip_through_json(seed: int, training: bool) -> None:
    """The JSON that networkx writes, under either name of its edges, is the same graph again."""
    problem = generate("fork_join", stages=2, seed=seed, training=training)
    graph = to_networkx(problem.graph)
    for key in ("links", "edges"):
        again = to_networkx(parse(json.dumps(nx.node_link_data(graph, edges=key))).graph)
        assert nx.utils.graphs_equal(again, graph)


def test_by_hand() -> None:
    """Numbers hold for one device type, defaults fill the rest, nodes may be any values."""
    graph = nx.DiGraph()
    graph.add_node(("a", 1), time=np.float64(2), activation_bytes=8, parameter_bytes=np.int64(4), colocation="left")
    graph.add_node("b", time=3, memory=5, twin=("a", 1), backward=True, colocation="left")
    graph.add_node("c", time=0, colocation="right")
    graph.add_edge(("a", 1), "b")
    graph.add_edge("b", "c", bytes=1)
    ops = from_networkx(graph, device_type="V100")
    assert ops.names == ("('a', 1)", "b", "c")
    assert ops.device_types == ("V100",)
    assert ops.time.tolist() == [[2.0, 3.0, 0.0]]
    assert ops.memory.tolist() == [12.0, 5.0, 0.0]
    assert ops.edge_bytes.tolist() == [8.0, 1.0]
    assert ops.colocation.tolist() == [0, 0, 1]
    assert ops.twin.tolist() == [1, 0, -1]
    assert ops.backward.tolist() == [False, True, False]


def test_times_per_device_type() -> None:
    """A dict gives a time per type, null and absence mean that a type cannot run the op, a number holds for all."""
    nodes = [{"id": 1, "time": {"H100": 1.0, "mine": 2.0}}, {"id": 2, "time": {"H100": 3.0, "mine": None}}]
    data = {"directed": True, "nodes": [*nodes, {"id": 3, "time": 4}], "edges": [{"source": 1, "target": 2}]}
    problem = parse(json.dumps(data))
    assert problem.graph.device_types == ("H100", "mine")
    assert problem.graph.time.tolist() == [[1.0, 3.0, 4.0], [2.0, np.inf, 4.0]]
    assert problem.cluster.device_types == (catalogue["H100"],)
    mine = parse(json.dumps(data), device_type="mine", bandwidth=5.0, devices=2)
    assert mine.time().tolist() == [[2.0, np.inf, 4.0]]
    with pytest.raises(InstanceError, match=r"device_type: 'mine' is not one of .* give its bandwidth"):
        parse(json.dumps(data), device_type="mine")
    with pytest.raises(InstanceError, match="the graph has no times for 'A100'"):
        parse(json.dumps(data), device_type="A100")


@pytest.mark.parametrize("graph", [nx.Graph([(1, 2)]), nx.MultiDiGraph([(1, 2)])])
def test_other_graphs_are_refused(graph: nx.Graph) -> None:
    """An undirected graph has no order, a multigraph no one edge between two ops."""
    with pytest.raises(InstanceError, match=f"a {type(graph).__name__} is not a DiGraph"):
        from_networkx(graph)


def test_bad_attributes_are_named() -> None:
    """An attribute of a wrong type in a graph made by hand is named like one in a file."""
    graph = nx.DiGraph()
    graph.add_node("a", time=float("nan"))
    with pytest.raises(InstanceError, match=r"nodes\[0\].time: nan is not finite"):
        from_networkx(graph)
    with pytest.raises(InstanceError, match="nodes: there is no op"):
        from_networkx(nx.DiGraph())
    with pytest.raises(InstanceError, match=r"nodes\[1\].id: 1 is a duplicate"):
        from_networkx(nx.DiGraph([("1", 1)]))


def _small(multi: bool = False) -> nx.DiGraph:
    graph = nx.MultiDiGraph() if multi else nx.DiGraph()
    for i in range(3):
        graph.add_node(("l", i), time=i + 1.0, memory=10.0)
    graph.add_edges_from([(("l", 0), ("l", 1), {"bytes": 5}), (("l", 0), ("l", 2), {"bytes": 7})])
    return graph


NUMBERED = nx.convert_node_labels_to_integers(_small())
WRITTEN = {
    "tuples": json.dumps(nx.node_link_data(_small(), edges="edges")),
    "multigraph": json.dumps(nx.node_link_data(_small(multi=True), edges="links")),
    "adjacency": json.dumps(nx.adjacency_data(NUMBERED)),
    "cytoscape": json.dumps(nx.cytoscape_data(NUMBERED)),
    "names": json.dumps(nx.node_link_data(NUMBERED, name="name", source="from", target="to", edges="edges")),
    "graphml": "\n".join(nx.generate_graphml(NUMBERED)),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_what_networkx_writes(form: str) -> None:
    """The same graph is read in every form in which networkx writes it as text."""
    graph = parse(WRITTEN[form]).graph
    assert graph.time.tolist() == [[1, 2, 3]]
    assert graph.edge_bytes.tolist() == [5, 7]
    assert graph.target.tolist() == [1, 2]
    assert graph.names[1] == ("('l', 1)" if form in ("tuples", "multigraph") else "1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<graphml>", "content: is no GraphML: ParseError"),
        ("<html></html>", "content: is no GraphML"),
        ("\n".join(nx.generate_graphml(nx.Graph([(1, 2)]))), "directed: false means no order"),
        ('{"adjacency": [[]], "nodes": []}', "adjacency: is not a list of 0 lists"),
        ('{"adjacency": [3], "nodes": [{"id": 1, "time": 1}]}', r"adjacency\[0\]: 3 is not a list"),
        ('{"elements": 3}', "nodes: is missing"),
        ('{"elements": {"nodes": [{"data": 3}], "edges": []}}', r"nodes\[0\]: 3 is not an object"),
        (
            '{"nodes": [{"id": 0, "time": 1}, {"id": 1, "time": 1}], "multigraph": true, '
            '"edges": [{"source": 0, "target": 1}, {"source": 0, "target": 1}]}',
            r"edges\[1\]: 0 -> 1 is a duplicate: give one edge the bytes of both",
        ),
        ('{"nodes": [{"id": 0, "weight": 1}], "edges": []}', "if weight is that, call it time and count seconds"),
    ],
)
def test_what_cannot_be_read_says_how(text: str, words: str) -> None:
    """A form that says too little, or too much, is answered with what to write."""
    with pytest.raises(InstanceError, match=words):
        parse(text)
