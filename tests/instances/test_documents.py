"""Documents: what is written is read back, and the published schema describes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    Level,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    RampTopology,
    TreeTopology,
    content_hash,
    dump,
    json_schema,
    load,
)
from gangplan.instances.documents import from_data, to_data
from gangplan.instances.intake import parse_json

FAST = DeviceType("fast", flops=1e12, memory=1e9, memory_bandwidth=1e11)
HOST = DeviceType("host", host=True)
LEVELS = (Level("server", 2e9, 1e-6), Level("rack", 1e9))
TREE = TreeTopology(LEVELS, np.array([[0, 0, 1], [0, 0, 0]]))
CLUSTER = Cluster((FAST, HOST), np.array([0, 0, 1]), TREE)
GRAPH = OpGraph(
    names=("a", "b", "c"),
    device_types=("fast", "host"),
    time=np.array([[1.0, np.inf, 0.1], [3.0, 0.0, 2.0]]),
    memory=np.array([1.0, 2.0, 3.0]),
    parameter_bytes=np.array([0.5, 0.0, 0.0]),
    activation_bytes=np.array([4.0, 0.0, 0.0]),
    source=np.array([0]),
    target=np.array([1]),
    edge_bytes=np.array([4.0]),
    colocation=np.array([0, 0, -1]),
    twin=np.array([1, 0, -1]),
    backward=np.array([False, True, False]),
)

# for every class a value, and for every field of it another value: a new field fails the test until it is here
CASES: dict[type, tuple[Any, dict[str, Any]]] = {
    DeviceType: (FAST, {"name": "slow", "flops": None, "memory": None, "memory_bandwidth": None, "host": True}),
    Level: (LEVELS[0], {"name": "pod", "bandwidth": 3.0, "latency": 0.0}),
    TreeTopology: (
        TREE,
        {"levels": (Level("x", 1.0), Level("y", 1.0)), "group": np.array([[0, 1, 1], [0, 0, 0]])},
    ),
    RampTopology: (
        RampTopology(),
        {
            "communication_groups": 1,
            "racks": 1,
            "servers": 1,
            "channel_bandwidth": 1.0,
            "propagation": 1.0,
            "io_latency": 1.0,
        },
    ),
    Cluster: (
        CLUSTER,
        {
            "device_types": (FAST, replace(HOST, name="x")),
            "type_of": np.array([0, 1, 1]),
            "topology": RampTopology(1, 3, 1),
        },
    ),
    OpGraph: (
        GRAPH,
        {
            "names": ("a", "b", "d"),
            "device_types": ("fast", "tiny"),
            "time": np.array([[1.0, 1.0, 0.1], [np.inf, 0.0, 2.0]]),
            "memory": np.array([1.0, 2.0, 1 / 3]),
            "parameter_bytes": np.zeros(3),
            "activation_bytes": np.zeros(3),
            "source": np.array([2]),
            "target": np.array([2]),
            "edge_bytes": np.array([0.1 + 0.2]),
            "colocation": np.array([-1, -1, -1]),
            "twin": np.array([-1, -1, -1]),
            "backward": np.array([False, True, True]),
        },
    ),
    PartitionProblem: (
        PartitionProblem(GRAPH, CLUSTER),
        {
            "graph": replace(GRAPH, names=("x", "y", "z")),
            "cluster": replace(CLUSTER, type_of=np.array([1, 1, 1])),
            "variant": "free",
        },
    ),
    PartitionPlan: (
        PartitionPlan(("a", "b", "c"), np.array([0, 0, 1]), np.array([0, 0, 1]), "sha256:0"),
        {"ops": ("a", "b", "d"), "device": np.array([1, 1, 0]), "stage": np.array([1, 1, 0]), "instance": None},
    ),
}
EVERY_FIELD = [(cls, name) for cls, (_, others) in CASES.items() for name in others]


def same(a: Any, b: Any) -> bool:
    """Say whether two values are of the same type and equal down to every array."""
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("cls", CASES)
def test_every_field_has_a_case(cls: type) -> None:
    """No field escapes the round trip."""
    assert set(CASES[cls][1]) == {f.name for f in fields(cls)}


@pytest.mark.parametrize(("cls", "name"), EVERY_FIELD)
def test_round_trip(cls: type, name: str) -> None:
    """A value comes back the same after a change of any one field, and the change is seen."""
    value, others = CASES[cls]
    changed = replace(value, **{name: others[name]})
    assert not same(changed, value)
    assert same(from_data(cls, json.loads(json.dumps(to_data(changed)))), changed)


@pytest.mark.parametrize(("cls", "name"), [c for c in EVERY_FIELD if c[0] in (PartitionProblem, PartitionPlan)])
def test_hash_sees_every_field(cls: type, name: str) -> None:
    """The content hash changes with each field and is kept by a round trip."""
    value, others = CASES[cls]
    changed = replace(value, **{name: others[name]})
    assert content_hash(changed) != content_hash(value)
    assert content_hash(load(dump(changed))) == content_hash(changed)


@pytest.mark.parametrize("topology", [TREE, RampTopology(1, 3, 1)])
@pytest.mark.parametrize("cls", [PartitionProblem, PartitionPlan])
def test_documents_match_the_schema(cls: type, topology: Any) -> None:
    """What `dump` writes is valid by the published schema, with either topology."""
    value = CASES[cls][0]
    if cls is PartitionProblem:
        value = replace(value, cluster=replace(CLUSTER, topology=topology))
    document = json.loads(dump(value))
    schema = json_schema(document["kind"])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("path", ["schema_version", "kind", "graph", "graph.names", "graph.time", "cluster.topology"])
def test_schema_and_loader_want_the_field(path: str) -> None:
    """Schema and loader both refuse a document without a required field, and the loader names it."""
    document = json.loads(dump(CASES[PartitionProblem][0]))
    *parents, last = path.split(".")
    holder = document
    for key in parents:
        holder = holder[key]
    del holder[last]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema("partition"))
    document.pop("content_hash", None)
    with pytest.raises(InstanceError) as caught:
        load(json.dumps(document))
    assert caught.value.field == path


def test_unknown_field_is_refused() -> None:
    """Schema and loader both refuse a field nobody knows, so a typing error is not ignored."""
    document = json.loads(dump(CASES[PartitionProblem][0]))
    document["graph"]["memroy"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema("partition"))
    with pytest.raises(InstanceError, match=r"^graph\.memroy: is unknown; known are names, "):
        load(json.dumps(document))


def test_altered_document_is_noticed() -> None:
    """A number changed by hand no longer matches the content hash."""
    text = dump(CASES[PartitionProblem][0])
    with pytest.raises(InstanceError, match=r"content_hash: .* does not match the content"):
        load(text.replace('"memory": [1.0, 2.0, 3.0]', '"memory": [1.0, 2.0, 3.5]'))


@given(st.lists(st.floats(0, 1e299), min_size=3, max_size=3))
def test_floats_survive_to_the_last_bit(memory: list[float]) -> None:
    """Decimal text and back changes no float."""
    graph = replace(GRAPH, memory=np.array(memory))
    assert from_data(OpGraph, parse_json(json.dumps(to_data(graph)))).memory.tolist() == memory


@dataclass(frozen=True)
class Aged:
    """A type that had a field less."""

    seconds: float
    owner: str | None = field(default=None, metadata={"later": True})
    labels: tuple[str, ...] = field(default=(), metadata={"later": True})


def test_a_field_that_came_later_is_left_out_where_it_says_nothing() -> None:
    """Hashes of older problems stay: neither `None` nor an empty tuple is written."""
    assert to_data(Aged(1.0)).keys() == {"seconds"}
    assert to_data(Aged(1.0, "ann", ("ssd",))) == {"seconds": 1.0, "owner": "ann", "labels": ["ssd"]}
