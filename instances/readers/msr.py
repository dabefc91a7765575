"""Read the device-placement JSON of Tarnawski et al., NeurIPS 2020 (throughput and latency inputs alike).

Times and transfer costs are in the file's own unit and stay in it: read "second" as that unit, and published
values come out as published. A transfer cost is a time; it is kept as bytes over a link of one byte per time unit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from ..arrays import require_count
from ..cluster import Cluster, DeviceType
from ..errors import InstanceError
from ..graph import OpGraph
from ..partition import PartitionProblem
from .fields import Index, classes, flag, label, number, objects


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
    index = Index()
    time: list[tuple[float, float]] = []
    size: list[float] = []
    color: list[int | str | None] = []
    backward: list[bool] = []
    for i, node in enumerate(nodes):
        where = f"nodes[{i}]"
        index.add(label(node, "id", where), f"{where}.id")
        supported = flag(node, "supportedOnFpga", where, True)
        time.append((number(node, "fpgaLatency", where) if supported else np.inf, number(node, "cpuLatency", where)))
        size.append(number(node, "size", where, 0.0))
        color.append(None if node.get("colorClass") is None else label(node, "colorClass", where))
        backward.append(flag(node, "isBackwardNode", where, False))
    ends, cost = _edges(edges, index)
    colocation = classes(color)
    return OpGraph(
        names=tuple(index.position),
        device_types=("accelerator", "cpu"),
        time=np.array(time, dtype=float).T,
        memory=np.array(size, dtype=float),
        parameter_bytes=np.zeros(len(nodes)),
        activation_bytes=np.zeros(len(nodes)),
        source=np.array([u for u, _ in ends], dtype=np.int32),
        target=np.array([v for _, v in ends], dtype=np.int32),
        edge_bytes=np.array(cost, dtype=float),
        colocation=np.array(colocation, dtype=np.int32),
        twin=np.array(_twins(colocation, backward), dtype=np.int32),
        backward=np.array(backward),
    )


def _edges(edges: list[dict[str, Any]], index: Index) -> tuple[list[tuple[int, int]], list[float]]:
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
    return list(kept), list(kept.values())


def _twins(colocation: list[int], backward: list[bool]) -> list[int]:
    members: dict[int, list[int]] = defaultdict(list)
    for i, c in enumerate(colocation):
        if c >= 0:
            members[c].append(i)
    twin = [-1] * len(colocation)
    for ops in members.values():
        if len(ops) == 2 and backward[ops[0]] != backward[ops[1]]:
            twin[ops[0]], twin[ops[1]] = ops[1], ops[0]
    return twin
