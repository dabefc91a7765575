"""Read and write networkx graphs, as objects and as the JSON and GraphML that networkx writes.

Node attributes: ``time`` (seconds: one number, or one per device type, null where a type cannot run the op),
``memory``, ``parameter_bytes``, ``activation_bytes`` (bytes), ``colocation`` (whole number or name), ``backward``
(true or false), ``twin`` (id of another node). Only ``time`` is needed; ``memory`` defaults to parameters and
activations together. Edge attribute: ``bytes``, by default its source's ``activation_bytes``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..arrays import FloatArray, plain, require_number
from ..errors import ENTRIES, InstanceError
from ..graph import OpGraph
from .fields import Index, classes, flag, label, number, objects, value_of


def recognises(data: dict[str, Any]) -> bool:
    """Say whether parsed JSON is node-link data."""
    return "elements" in data or ("nodes" in data and bool({"links", "edges", "adjacency", "directed"} & data.keys()))


def from_node_link(data: dict[str, Any], *, device_type: str | None = None) -> OpGraph:
    """Build the graph of parsed node-link JSON; a time that is one number is for `device_type`, an A100 by default."""
    if not flag(data, "directed", "graph", True):
        raise InstanceError("directed", "false means no order among the ops; a DiGraph is wanted")
    data = _flat(data)
    key = "links" if "links" in data else "edges"
    nodes = [(_label(node, _ID, f"nodes[{i}]"), node) for i, node in enumerate(objects(data, "nodes"))]
    edges = [
        (_label(edge, _SOURCE, f"{key}[{i}]"), _label(edge, _TARGET, f"{key}[{i}]"), edge)
        for i, edge in enumerate(objects(data, key))
    ]
    return built(nodes, edges, device_type, key)


_AMOUNTS = frozenset({"time", "memory", "parameter_bytes", "activation_bytes", "bytes"})
_ID, _SOURCE, _TARGET = ("id", "name"), ("source", "from"), ("target", "to")
"""What ids and ends are called: by networkx, else by those who name them otherwise."""


def _label(record: dict[str, Any], keys: tuple[str, ...], where: str) -> int | str:
    """Return an id; one that was a tuple is called by its text, as in `from_networkx`."""
    key = next((key for key in keys if key in record), keys[0])
    value = record.get(key)
    return str(_tuple(value)) if isinstance(value, list) and value else label(record, key, where)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """Return node-link data of what networkx writes as adjacency or for Cytoscape."""
    if "elements" in data:
        parts = data["elements"] if isinstance(data["elements"], dict) else {}
        return {key: [one.get("data", one) for one in objects(parts, key)] for key in ("nodes", "edges")}
    if "adjacency" not in data:
        return data
    nodes, rows = objects(data, "nodes"), data["adjacency"]
    if not isinstance(rows, list) or len(rows) != len(nodes):
        raise InstanceError("adjacency", f"is not a list of {len(nodes)} lists, one for each node")
    ends = [
        {**edge, "source": node.get("id"), "target": edge.get("id")}
        for i, (node, row) in enumerate(zip(nodes, rows, strict=True))
        for edge in objects({f"adjacency[{i}]": row}, f"adjacency[{i}]")
    ]
    return {"nodes": nodes, "edges": ends}


def graphml(text: str) -> dict[str, Any]:
    """Return node-link data of GraphML."""
    try:
        graph = import_module("networkx").parse_graphml(text)
    except Exception as error:  # of the XML parser, or of networkx
        raise InstanceError("content", f"is no GraphML: {type(error).__name__}: {error}") from None
    return {
        "directed": graph.is_directed(),
        "nodes": [{**_numbered(record), "id": node} for node, record in graph.nodes(data=True)],
        "edges": [{**_numbered(record), "source": a, "target": b} for a, b, record in graph.edges(data=True)],
    }


def _numbered(record: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with amounts as numbers: many programs declare all keys of GraphML as strings."""
    return {key: value_of(x) if key in _AMOUNTS and isinstance(x, str) else x for key, x in record.items()}


def from_networkx(graph: Any, *, device_type: str | None = None) -> OpGraph:
    """Return a `networkx.DiGraph` as an op graph; the module's docstring lists the attributes.

    Args:
        graph: nodes may be any values; an op is called by their text.
        device_type: what a time that is one number is for, an A100 by default.

    Raises:
        InstanceError: naming node or edge, attribute and the value found.
    """
    if graph.is_multigraph() or not graph.is_directed():
        raise InstanceError("graph", f"a {type(graph).__name__} is not a DiGraph")
    return built(list(graph.nodes(data=True)), list(graph.edges(data=True)), device_type, "edges")


def to_networkx(graph: OpGraph) -> Any:
    """Return the op graph as a `networkx.DiGraph` whose attributes `from_networkx` reads back.

    Of parallel edges the one that moves most bytes stays.
    """
    result = import_module("networkx").DiGraph()
    for i, name in enumerate(graph.names):
        seconds = [None if np.isinf(x) else x for x in graph.time[:, i].tolist()]
        attributes = {"time": dict(zip(graph.device_types, seconds, strict=True)), "backward": bool(graph.backward[i])}
        for field in ("memory", "parameter_bytes", "activation_bytes"):
            attributes[field] = float(getattr(graph, field)[i])
        if graph.colocation[i] >= 0:
            attributes["colocation"] = int(graph.colocation[i])
        if graph.twin[i] >= 0:
            attributes["twin"] = graph.names[graph.twin[i]]
        result.add_node(name, **attributes)
    for u, v, size in zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True):
        ends = graph.names[u], graph.names[v]
        result.add_edge(*ends, bytes=max(size, result.edges[ends]["bytes"] if result.has_edge(*ends) else 0.0))
    return result


def built(
    nodes: list[tuple[Any, dict[str, Any]]], edges: list[Any], device_type: str | None, key: str = "edges"
) -> OpGraph:
    """Build the graph of (id, attributes) and (source, target, attributes); errors call an edge one of `key`."""
    if not nodes:
        raise InstanceError("nodes", "there is no op")
    index = Index()
    for i, (node, _) in enumerate(nodes):
        index.add(node, f"nodes[{i}].id")
    records = [record for _, record in nodes]
    amounts = {
        field: np.array([number(r, field, f"nodes[{i}]", 0.0) for i, r in enumerate(records)], dtype=float)
        for field in ("parameter_bytes", "activation_bytes")
    }
    occupied = amounts["parameter_bytes"] + amounts["activation_bytes"]
    memory = [number(r, "memory", f"nodes[{i}]", float(occupied[i])) for i, r in enumerate(records)]
    types, time = _times(records, device_type)
    source, target, size = _edges(edges, index, amounts["activation_bytes"], key)
    return OpGraph(
        names=tuple(index.position),
        device_types=types,
        time=time,
        memory=np.array(memory, dtype=float),
        **amounts,
        source=np.array(source, dtype=np.int32),
        target=np.array(target, dtype=np.int32),
        edge_bytes=np.array(size, dtype=float),
        colocation=np.array(_colocation(records)),
        twin=np.array(_twins(records, index), dtype=np.int32),
        backward=np.array([flag(r, "backward", f"nodes[{i}]", False) for i, r in enumerate(records)]),
    )


def _times(records: list[dict[str, Any]], device_type: str | None) -> tuple[tuple[str, ...], FloatArray]:
    names = list(dict.fromkeys(t for r in records if isinstance(r.get("time"), dict) for t in r["time"]))
    names = names or [device_type or "A100"]
    if not any("time" in r for r in records):
        others = [key for key, value in records[0].items() if key not in _ID and isinstance(value, int | float)]
        hint = f"; if {' or '.join(others)} is that, call it time and count seconds" if others else ""
        raise InstanceError("nodes[0].time", f"is missing, the seconds that an op takes{hint}")
    ENTRIES.check(len(names) * len(records), "nodes")
    row = {name: i for i, name in enumerate(names)}
    time = np.full((len(names), len(records)), np.inf)
    for i, record in enumerate(records):
        value = plain(record.get("time"))
        if not isinstance(value, dict):  # a plain number holds for every type
            time[:, i] = number(record, "time", f"nodes[{i}]")
            continue
        for name, seconds in value.items():
            require_number(plain(seconds), f"nodes[{i}].time.{name}", optional=True)
            time[row[name], i] = np.inf if seconds is None else seconds
    return tuple(names), time


def _edges(edges: list[Any], index: Index, output: FloatArray, key: str) -> tuple[list[int], list[int], list[float]]:
    source, target, size = [], [], []
    seen: set[tuple[int, int]] = set()
    for i, (a, b, record) in enumerate(edges):
        u, v = index.find(a, f"{key}[{i}].source"), index.find(b, f"{key}[{i}].target")
        if (u, v) in seen:
            raise InstanceError(f"{key}[{i}]", f"{a!r} -> {b!r} is a duplicate: give one edge the bytes of both")
        seen.add((u, v))
        source.append(u)
        target.append(v)
        size.append(number(record, "bytes", f"{key}[{i}]", float(output[u])))
    return source, target, size


def _colocation(records: list[dict[str, Any]]) -> list[int]:
    given = [
        None if r.get("colocation") is None else label(r, "colocation", f"nodes[{i}]") for i, r in enumerate(records)
    ]
    if all(c is None or (isinstance(c, int) and c >= 0) for c in given):
        return [-1 if c is None else int(c) for c in given]
    return classes(given)


def _twins(records: list[dict[str, Any]], index: Index) -> list[int]:
    twin = [-1] * len(records)
    for i, record in enumerate(records):
        if record.get("twin") is None:
            continue
        j = index.find(record["twin"], f"nodes[{i}].twin")
        for a, b in ((i, j), (j, i)):
            if twin[a] not in (-1, b):
                raise InstanceError(f"nodes[{i}].twin", f"{record['twin']!r} makes two twins of one op")
            twin[a] = b
    return twin
