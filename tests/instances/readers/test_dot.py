"""Graphs in Graphviz' language."""

from __future__ import annotations

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers import parse

GRAPH = r"""
// a comment
/* and
   another */
strict digraph "a graph" {
  rankdir=LR; node [shape=box, time=9];
# of the preprocessor
  a [time=1 memory="2e3", label="the [first] -> \"op\""];
  subgraph cluster_0 { label = "b and c"; b [time=0.5]; "c c" [time=".25"] }
  a -> b -> "c c" [bytes=7];
  a:out:se -> "c c":in [bytes="8"]
  ; -1 [time=3, id=x]
}
"""


def test_what_is_read() -> None:
    """Names may be quoted, chains and ports are edges, defaults and frames are left aside."""
    graph = parse(GRAPH).graph
    assert graph.names == ("a", "b", "c c", "-1")
    assert graph.time.tolist() == [[1, 0.5, 0.25, 3]]
    assert graph.memory.tolist() == [2000, 0, 0, 0]
    ends = zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True)
    assert sorted(ends) == [(0, 1, 7), (0, 2, 8), (1, 2, 7)]


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("a [time=1]; b [time=2]; c [time=1]; a -> {b c};", {"ab", "ac"}),
        (
            "node [time=1]; {a b} -> subgraph x { c; d -> e } -> f",
            {"ac", "ad", "ae", "bc", "bd", "be", "cf", "df", "ef", "de"},
        ),
        ("node [time=1] a -> {b -> c}", {"ab", "ac", "bc"}),
        ("{ node [time=1]; a } NODE [time=2]; {b}; a -> b", {"ab"}),
    ],
)
def test_braces(text: str, edges: set[str]) -> None:
    """Braces lead from and to all nodes inside; what they set holds inside."""
    graph = parse(f"digraph {{ {text} }}").graph
    assert {graph.names[a] + graph.names[b] for a, b in zip(graph.source, graph.target, strict=True)} == edges


def test_defaults() -> None:
    """Defaults hold for the nodes and edges after them, in their braces, unless something else is said."""
    text = "a [time=5]; node [time=1]; edge [bytes=7]; a -> b -> c; {edge [bytes=8]; b -> d [bytes=9]; a -> d} c -> d"
    graph = parse(f"digraph {{ {text} }}").graph
    assert graph.time.tolist() == [[5, 1, 1, 1]]
    ends = zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True)
    assert sorted(ends) == [(0, 1, 7), (0, 3, 8), (1, 2, 7), (1, 3, 9), (2, 3, 7)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("digraph {\n a [time=1];\n <b> [time=2]\n}", "line 3: '<b> .time=2.' is not understood"),
        ("digraph { a [time=1] -- b }", "line 1: '-- b }' is not understood"),
        ("digraph { a [time=1]; a -> b }", r"nodes\[1\].time: is missing"),
        ("digraph { a -> b [size=1] }", r"nodes\[0\].time: is missing, the seconds"),
        ("digraph { a [size=3]; }", "if size is that, call it time and count seconds"),
        ("digraph { a [time=soon] }", r"nodes\[0\].time: 'soon' is not a number"),
        ("digraph { a [time=1]; a -> a }", "there is a cycle"),
        ("digraph {}", "nodes: there is no op"),
        ("graph { a; b }", "directed: false means no order among the ops"),
        ("graph { a [time=1]; b [time=2]; a -- b; }", "directed: false means no order among the ops"),
        ("digraph { a -> }", "line 1: '}' is not understood"),
        ("digraph { a -> -> b }", "line 1: '-> b }' is not understood"),
        ("digraph { a -> {b ", "line 1: the end, within braces, is not understood"),
    ],
)
def test_what_is_wrong(text: str, words: str) -> None:
    """What cannot be read is named by its line or its field."""
    with pytest.raises(InstanceError, match=words):
        parse(text)
