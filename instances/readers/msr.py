"""Read the device-placement JSON of Tarnawski et al., NeurIPS 2020 (throughput and latency inputs alike).

Times and transfer costs are in the file's own unit and stay in it: read "second" as that unit, and published
values come out as published. A transfer cost is a time; it is kept as bytes over a link of one byte per time unit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..arrays import require_count
from ..cluster import Cluster, DeviceType
from ..errors import InstanceError
from ..graph import OpGraph
from ..partition import PartitionProblem
from .fields import Index, classes, flag, label, number, objects
from .networkx_graph import built


def recognises(data: dict[str, Any]) -> bool:
    """Say whether parsed JSON is of this format."""
    if {"maxFPGAs", "maxCPUs", "maxSizePerFPGA"} & data.keys():
        return True
    nodes = data.get("nodes")
    first = nodes[0] if isinstance(nodes, list) and nodes else None
    return isinstance(first, dict) and bool({"fpgaLatency", "cpuLatency", "supportedOnFpga"} & first.keys())


def from_msr(data: dict[str, Any], *, devices: int | None = None) -> PartitionProblem:
    """Build the problem of a parsed file.

    Device types are ``accelerator`` and ``cpu``, a host; devices come in that order. The bandwidth is 1, and
    `devices` accelerators are instead of the file's.
    """
    accelerators = number(data, "maxFPGAs", whole=True)
    cpus = number(data, "maxCPUs", whole=True)
    capacity = number(data, "maxSizePerFPGA")
    if not capacity:
        raise InstanceError("maxSizePerFPGA", f"{capacity!r} is not positive")
    if devices is not None:
        require_count(devices, "devices")
        accelerators = devices
    if not accelerators and not cpus:
        raise InstanceError("maxFPGAs", f"{accelerators!r} accelerators and {cpus!r} CPUs leave no device")
    groups = (DeviceType("accelerator", memory=capacity), accelerators), (DeviceType("cpu", host=True), cpus)
    return PartitionProblem(_graph(data), Cluster.flat(*groups, bandwidth=1.0, name="host"))


def _graph(data: dict[str, Any]) -> OpGraph:
    nodes, edges = objects(data, "nodes"), objects(data, "edges")
    if not nodes:
        raise InstanceError("nodes", "[] has no op")
    index, records, color = Index(), list[dict[str, Any]](), list[int | str | None]()
    for i, node in enumerate(nodes):
        where = f"nodes[{i}]"
        index.add(label(node, "id", where), f"{where}.id")
        supported = flag(node, "supportedOnFpga", where, True)
        fast = number(node, "fpgaLatency", where) if supported else None
        time = {"accelerator": fast, "cpu": number(node, "cpuLatency", where)}
        records.append({"time": time, "memory": number(node, "size", where, 0.0)})
        color.append(None if node.get("colorClass") is None else label(node, "colorClass", where))
        records[-1]["backward"] = flag(node, "isBackwardNode", where, False)
    names, colocation = list(index.position), classes(color)
    for record, x, j in zip(records, colocation, _twins(colocation, records), strict=True):
        record |= {"colocation": None if x < 0 else x, "twin": None if j < 0 else names[j]}
    ends = [(names[u], names[v], {"bytes": cost}) for (u, v), cost in _edges(edges, index).items()]
    return built(list(zip(names, records, strict=True)), ends, None)


def _edges(edges: list[dict[str, Any]], index: Index) -> dict[tuple[int, int], float]:
    kept: dict[tuple[int, int], float] = {}
    cost_of: dict[int, tuple[float, int]] = {}
    for i, edge in enumerate(edges):
        where = f"edges[{i}]"
        u = index.find(label(edge, "sourceId", where), f"{where}.sourceId")
        v = index.find(label(edge, "destId", where), f"{where}.destId")
        cost = number(edge, "cost", where)
        first, j = cost_of.setdefault(u, (cost, i))
        if first != cost:
            problem = f"{cost!r} differs from the {first!r} of edges[{j}], and an op sends one output"
            raise InstanceError(f"{where}.cost", problem)
        kept[u, v] = cost  # an edge given twice says nothing new
    return kept


def _twins(colocation: list[int], records: list[dict[str, Any]]) -> list[int]:
    members: dict[int, list[int]] = defaultdict(list)
    for i, c in enumerate(colocation):
        if c >= 0:
            members[c].append(i)
    twin = [-1] * len(colocation)
    for ops in members.values():
        if len(ops) == 2 and records[ops[0]]["backward"] != records[ops[1]]["backward"]:
            twin[ops[0]], twin[ops[1]] = ops[1], ops[0]
    return twin
