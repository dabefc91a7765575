"""Whatever is wrong with a file, one line says what, and where."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import InstanceError, dump
from gangplan.instances.generators import generate
from gangplan.instances.kinds import DOCUMENTS
from gangplan.instances.readers import parse, read, to_networkx

from ...seeds import examples

PROFILE = """\
node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0
node2 -- ReLU() -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[10.0; 6.0], parameter_size=0
node3 -- Linear(4, 2) -- forward_compute_time=3.0, backward_compute_time=5.0, activation_size=8.0, parameter_size=40.0
\tnode1 -- node2
\tnode2 -- node3
"""
PLACEMENT: dict[str, Any] = {
    "maxSizePerFPGA": 100.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.0, "isBackwardNode": 0, "colorClass": i}
        for i in range(3)
    ],
    "edges": [{"sourceId": 0, "destId": i, "cost": 0.5} for i in (1, 2)],
}
PROBLEM = generate("fork_join", stages=1, width=2, depth=1)
DOCUMENT: dict[str, Any] = json.loads(dump(PROBLEM))
del DOCUMENT["content_hash"]
NODE_LINK: dict[str, Any] = json.loads(json.dumps(nx.node_link_data(to_networkx(PROBLEM.graph), edges="edges")))
FORMATS = [PLACEMENT, DOCUMENT, NODE_LINK]
TEXTS = [PROFILE, *(json.dumps(data) for data in FORMATS)]


def refusal(text: str) -> str:
    """Return the line with which text is refused."""
    with pytest.raises(InstanceError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize("text", TEXTS)
def test_the_originals_are_fine(text: str) -> None:
    """What the tests below break is whole before."""
    assert parse(text).graph.n_ops > 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "content: the file is empty"),
        (b" \n\t\n", "content: the file is empty"),
        (b"\x7fELF\x02\x01\x01\x00", "content: byte 0x00 at offset 7 is not text"),
        (b"\x89PNG\r\n\x1a\n", "content: byte 0x89 at offset 0 is not UTF-8 text"),
        ("node1 -- caf\u00e9".encode("latin-1"), "content: byte 0xe9 at offset 12 is not UTF-8 text"),
        ('{"a": 1}'.encode("utf-16"), "content: byte 0xff at offset 0 is not UTF-8 text"),
        (b"hello\nworld", "content: 'hello' begins no known format"),
        (b"[1, 2]", "content: a JSON list is no known format"),
        (b"{}", "content: JSON with no field is no known format"),
        (b'{"b": 1, "a": 2}', "content: JSON with a, b is no known format"),
        (b'{"a": NaN}', "JSON: NaN is not a number"),
        (b'{"a": -Infinity}', "JSON: -Infinity is not a number"),
        (b'{"a": 1e999}', "JSON: 1e999 is too large a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "JSON: a whole number has thousands of digits"),
        (b'{"a": 1, "a": 2}', "a: is given twice"),
        (b'{"a": ' * 20000, "JSON: is nested too deeply"),
        (b'{"maxFPGAs": 1', "JSON: Expecting ',' delimiter at line 1 column 15"),
    ],
)
def test_content(tmp_path: Path, content: bytes, line: str) -> None:
    """Empty, binary, cut and unknown files are named with what they hold."""
    path = tmp_path / "graph"
    path.write_bytes(content)
    with pytest.raises(InstanceError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: {line}"


def test_no_file(tmp_path: Path) -> None:
    """A missing file, a directory, an unreadable name: all the same kind of error."""
    for path, problem in [
        (tmp_path / "missing", "no such file or directory"),
        (tmp_path, "is a directory"),
        (tmp_path / ("x" * 300), "file name too long"),
        (tmp_path / "a\0b", "embedded null byte"),
    ]:
        with pytest.raises(InstanceError) as caught:
            read(path)
        assert caught.value.problem == problem
        assert caught.value.source == os.fspath(path)


def edited(data: dict[str, Any], *path: Any, value: Any) -> str:
    """Return the JSON of `data` with one value replaced, or taken out if the value is `...`."""
    data = copy.deepcopy(data)
    holder: Any = data
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("maxFPGAs",), ..., "maxFPGAs: is missing"),
        (("maxFPGAs",), 1.5, "maxFPGAs: 1.5 is not a whole number"),
        (("maxFPGAs",), True, "maxFPGAs: True is not a whole number"),
        (
            ("maxFPGAs",),
            10**12,
            "accelerator count: 1000000000000 is more than 10000000 devices (GANGPLAN_MAX_DEVICES sets the limit)",
        ),
        (("maxSizePerFPGA",), 0, "maxSizePerFPGA: 0 is not positive"),
        (("maxSizePerFPGA",), None, "maxSizePerFPGA: None is not a number"),
        (("maxCPUs",), "1", "maxCPUs: '1' is not a whole number"),
        (("maxCPUs",), -1, "maxCPUs: -1 is negative"),
        (("nodes",), ..., "nodes: is missing"),
        (("nodes",), {}, "nodes: {} is not a list"),
        (("nodes",), [], "nodes: [] has no op"),
        (("nodes", 1), 5, "nodes[1]: 5 is not an object"),
        (("nodes", 1, "id"), ..., "nodes[1].id: is missing"),
        (("nodes", 1, "id"), 0, "nodes[1].id: 0 is a duplicate"),
        (("nodes", 1, "id"), "0", "nodes[1].id: '0' is a duplicate"),
        (("nodes", 1, "id"), 1.0, "nodes[1].id: 1.0 is not a whole number or a name"),
        (("nodes", 1, "id"), [1], "nodes[1].id: [1] is not a whole number or a name"),
        (("nodes", 1, "cpuLatency"), -2, "nodes[1].cpuLatency: -2 is negative"),
        (("nodes", 1, "fpgaLatency"), "2", "nodes[1].fpgaLatency: '2' is not a number"),
        (("nodes", 1, "fpgaLatency"), 10**400, None),
        (("nodes", 1, "size"), -1, "nodes[1].size: -1 is negative"),
        (("nodes", 1, "supportedOnFpga"), 2, "nodes[1].supportedOnFpga: 2 is not true or false"),
        (("nodes", 1, "isBackwardNode"), "no", "nodes[1].isBackwardNode: 'no' is not true or false"),
        (("nodes", 1, "colorClass"), {}, "nodes[1].colorClass: {} is not a whole number or a name"),
        (("edges",), ..., "edges: is missing"),
        (("edges", 1), None, "edges[1]: None is not an object"),
        (("edges", 1, "destId"), 8, "edges[1].destId: 8 is not an op of the graph"),
        (("edges", 1, "destId"), 0, "edges: there is a cycle: 0 -> 0"),
        (("edges", 1, "cost"), ..., "edges[1].cost: is missing"),
        (("edges", 1, "cost"), False, "edges[1].cost: False is not a number"),
        (
            ("edges", 1, "cost"),
            0.25,
            "edges[1].cost: 0.25 differs from the 0.5 of edges[0], and an op sends one output",
        ),
    ],
)
def test_placement(path: tuple[Any, ...], value: Any, line: str | None) -> None:
    """A placement input with one wrong value is refused with field and value."""
    found = refusal(edited(PLACEMENT, *path, value=value))
    assert found == line if line else found.startswith("nodes[1].fpgaLatency: 1000")


def test_longer_cycle_is_named() -> None:
    """The ops of a cycle are listed in its order, without those that only lead to or from it."""
    data = copy.deepcopy(PLACEMENT)
    data["nodes"] += [data["nodes"][0] | {"id": i} for i in range(3, 6)]
    ends = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (4, 5)]
    data["edges"] = [{"sourceId": u, "destId": v, "cost": 1} for u, v in ends]
    assert refusal(json.dumps(data)) == "edges: there is a cycle: 1 -> 2 -> 3 -> 1"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("=3.0", "=-3.0", "line 3: forward_compute_time: -3.0 is negative"),
        ("=3.0", "=nan", "line 3: forward_compute_time: 'nan' is not a number"),
        ("=3.0", "=1e999", "line 3: forward_compute_time: '1e999' is not finite"),
        ("=3.0", "=1_0", "line 3: forward_compute_time: '1_0' is not a number"),
        ("=3.0", "=", "line 3: forward_compute_time: '' is not a number"),
        ("[10.0; 6.0]", "[10.0; x]", "line 2: activation_size: 'x' is not a number"),
        ("[10.0; 6.0]", "[10.0; 6.0", "line 2: activation_size: '[10.0; 6.0' is not a number"),
        (", parameter_size=0\n", "\n", "line 2: parameter_size: is missing"),
        ("=3.0,", "=3.0, forward_compute_time=4,", "line 3: forward_compute_time: '4' is given after '3.0'"),
        ("node3 -- Linear", "node2 -- Linear", "line 3: 'node2' is a duplicate"),
        ("\tnode2 -- node3", "\tnode2 -- node4", "line 5: 'node4' is not an op of the graph"),
        ("\tnode2 -- node3", "\tnode2 --", "line 5: '\\tnode2 --' is not an edge 'a -- b'"),
        ("\tnode2 -- node3", "\tnode1 -- node2", "line 5: 'node1 -- node2' is a duplicate of line 4"),
        ("\tnode2 -- node3", "\tnode3 -- node3", "edges: there is a cycle: node3 -> node3"),
        ("\tnode2 -- node3\n", "", "line 3: no edge joins 'node3' to the graph: the file may be cut"),
        ("node3 -- Linear(4, 2) -- ", "node3 -- ", None),
    ],
)
def test_profile(old: str, new: str, line: str | None) -> None:
    """A profile with one wrong value is refused with line, field and value."""
    assert old in PROFILE
    found = refusal(PROFILE.replace(old, new))
    assert found == line if line else found.startswith("line 3: 'node3 -- forward_compute_time=3.0")


@pytest.mark.parametrize("space", [" ", "\r", "\x1f", "\u2003"])
def test_white_space_around_numbers(space: str) -> None:
    """Whatever Python counts as white space may stand around a number; some of it `float` refuses."""
    assert dump(parse(PROFILE.replace("=3.0", f"={space}3.0{space}"))) == dump(parse(PROFILE))


def test_profile_of_inputs_only() -> None:
    """A profile whose only ops are data loading is empty once they are dropped."""
    assert refusal(PROFILE.splitlines()[0]) == "nodes: there are Input ops only"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("schema_version",), 99, "schema_version: 99 is not 1"),
        (("kind",), [], f"kind: [] is not one of {', '.join(DOCUMENTS)}"),
        (("variant",), "x", "variant: 'x' is not one of contiguous, convex, free"),
        (("graph",), 3, "graph: 3 is not a table"),
        (("graph", "names", 1), "join0", "graph.names[1]: 'join0' is a duplicate"),
        (("graph", "names", 1), 1, "graph.names[1]: 1 is not a name"),
        (("graph", "device_types"), [1], "graph.device_types[0]: 1 is not a name"),
        (("graph", "time", 0, 2), -1.0, "graph.time[0][2]: -1.0 is negative"),
        (("graph", "time", 0, 2), None, "graph.time: op 'stage1/branch1/op0' runs on no device type"),
        (("graph", "time"), [], "graph.time: has 0 entries where 1 x 8 are expected: device_types x names"),
        (("graph", "memory", 1), "big", "graph.memory[1]: 'big' is not a number"),
        (("graph", "memory", 1), True, "graph.memory[1]: True is not a number"),
        (("graph", "memory"), None, "graph.memory: None is not a number"),
        (("graph", "source"), 7, "graph.source: has a single value where any are expected"),
        (("graph", "source", 0), 0.5, "graph.source[0]: 0.5 is not a whole number"),
        (("graph", "source", 0), -(2**63), "graph.source[0]: -9223372036854775808 does not fit 32 bits"),
        (("graph", "target", 0), 99, "graph.target[0]: 99 is not one of the 8 ops"),
        (("graph", "twin", 0), 3, None),
        (("graph", "backward", 0), 1, "graph.backward[0]: 1 is not true or false"),
        (("graph", "colocation", 0), -2, "graph.colocation[0]: -2 is negative"),
        (("cluster", "type_of"), [], "cluster.type_of: the cluster has no device"),
        (("cluster", "type_of", 0), 1, "cluster.type_of[0]: 1 is not one of the 1 device types"),
        (("cluster", "topology", "kind"), [], "cluster.topology.kind: [] is not one of tree, ramp"),
        (("cluster", "topology", "levels", 0, "bandwidth"), 0, None),
        (("cluster", "device_types", 0, "name"), "TPU", None),
        (("cluster", "device_types", 0, "memory"), 10**400, None),
        (("cluster", "device_types", 0, "host"), 0, "cluster.device_types[0].host: 0 is not true or false"),
    ],
)
def test_document(path: tuple[Any, ...], value: Any, line: str | None) -> None:
    """A gangplan document with one wrong value is refused with the path of the field."""
    found = refusal(edited(DOCUMENT, *path, value=value))
    *keys, last = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    assert found == line if line else found.startswith("".join([*keys, last])[1:] + ": ")


def test_plan_is_no_problem() -> None:
    """A plan where a problem is wanted is named as what it is."""
    plan = {"schema_version": 1, "kind": "partition_plan", "ops": ["a"], "device": [0], "stage": [0], "instance": None}
    assert refusal(json.dumps(plan)) == "kind: 'partition_plan' is not a problem; a plan is read by gangplan.load"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("directed",), False, "directed: false means no order among the ops; a DiGraph is wanted"),
        (("nodes",), [], "nodes: there is no op"),
        (("nodes", 0, "id"), [], "nodes[0].id: [] is not a whole number or a name"),
        (("nodes", 0, "id"), "join1", "nodes[3].id: 'join1' is a duplicate"),
        (("nodes", 0, "time"), ..., "nodes[0].time: is missing"),
        (("nodes", 0, "time"), "1", "nodes[0].time: '1' is not a number"),
        (("nodes", 0, "time"), {"A100": -1}, "nodes[0].time.A100: -1 is negative"),
        (("nodes", 0, "memory"), [], "nodes[0].memory: [] is not a number"),
        (("nodes", 0, "twin"), "x", "nodes[0].twin: 'x' is not an op of the graph"),
        (("nodes", 0, "twin"), "join1", None),
        (("nodes", 0, "colocation"), 1.5, "nodes[0].colocation: 1.5 is not a whole number or a name"),
        (("nodes", 0, "backward"), 3, "nodes[0].backward: 3 is not true or false"),
        (("edges", 0, "target"), "x", "edges[0].target: 'x' is not an op of the graph"),
        (("edges", 0, "target"), "join0", "edges: there is a cycle: join0 -> join0"),
        (("edges", 0, "bytes"), -4, "edges[0].bytes: -4 is negative"),
    ],
)
def test_node_link(path: tuple[Any, ...], value: Any, line: str | None) -> None:
    """Node-link JSON with one wrong value is refused with field and value."""
    found = refusal(edited(NODE_LINK, *path, value=value))
    assert found == line if line else found.endswith("makes two twins of one op")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**31, -(2**63), 2**64, 10**400, 1e308, 5e-324]),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["a\nb", "\ud800", "join0", "tree", "free"]),
    st.recursive(st.just([]), lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=2), x, max_size=2)),
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in parsed JSON."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def settle(make: Callable[[], str]) -> None:
    """Read mutated text: the outcome is a problem that can be written again, or one printable line."""
    try:
        problem = parse(make())
    except InstanceError as error:
        line = str(error)
        assert line.isprintable()
        assert 0 < len(line) < 700
    else:
        assert dump(parse(dump(problem))) == dump(problem)


@settings(max_examples=examples(500))
@given(st.data())
def test_any_value_anywhere(data: st.DataObject) -> None:
    """Any JSON value in any place, or a value missing, is read or refused, never another exception."""
    original = copy.deepcopy(data.draw(st.sampled_from(FORMATS)))
    for place in data.draw(st.lists(st.sampled_from(places(original)[1:]), min_size=1, max_size=2)):
        value = data.draw(VALUES)
        holder: Any = original
        try:
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = value
        except (IndexError, KeyError, TypeError):  # the first replacement took this place away
            return
    settle(lambda: json.dumps(original))


@settings(max_examples=examples(500))
@given(st.sampled_from(TEXTS), st.integers(0, 5000), st.integers(0, 40), st.text(max_size=4))
def test_any_edit_of_the_text(text: str, start: int, length: int, patch: str) -> None:
    """Cutting and pasting characters anywhere is read or refused, never another exception."""
    start %= len(text)
    settle(lambda: text[:start] + patch + text[start + length :])


@given(st.text(max_size=60), st.sampled_from(["", "{", "[", "node1 -- "]))
def test_any_text(text: str, start: str) -> None:
    """Text that was never a graph is refused too."""
    settle(lambda: start + text)


@given(st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A file of any bytes is refused with its name."""
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    with pytest.raises(InstanceError) as caught:
        read(path)
    assert caught.value.source == str(path)


def test_every_cut_of_a_real_file(data: Path) -> None:
    """A real JSON file cut at any tenth byte is refused, and a cut profile at worst loses whole trailing edges."""
    text = (data / "msr-placement/throughput/layer-bert24_inference.json").read_text().strip()
    for end in range(0, len(text) - 1, 10):
        assert refusal(text[:end])
    profile = (data / "pipedream/alexnet.txt").read_text()
    for end in range(profile.index("\n") + 2, profile.index("\t"), 10):  # one op alone is a graph
        assert refusal(profile[:end])
