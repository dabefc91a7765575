"""Read PipeDream's profiles, ``graph.txt`` (Narayanan et al., SOSP 2019).

A line ``nodeK -- Description -- forward_compute_time=, backward_compute_time=, activation_size=,
parameter_size=`` is an op, a line ``<tab>nodeA -- nodeB`` an edge. Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ..arrays import IntArray, require_flag, require_text
from ..errors import InstanceError
from ..graph import OpGraph, with_backward
from .fields import Index
from .networkx_graph import built

MILLISECOND = 1e-3
FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class _ProfiledOp(NamedTuple):
    name: str
    line: int
    description: str
    forward: float
    backward: float
    activation: float
    parameters: float


def recognises(text: str) -> bool:
    """Say whether text is of this format: its first line that is not blank is an op or an edge."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return " -- " in first


def from_pipedream(
    text: str, *, training: bool = True, keep_inputs: bool = False, device_type: str = "A100"
) -> OpGraph:
    """Build the graph of a profile; its times are as measured, whatever the device type.

    An op occupies its activations and parameters, and so does its backward twin.

    Args:
        text: the file's content.
        training: add the backward ops (see `with_backward`); otherwise keep the forward pass alone.
        keep_inputs: keep the ``Input`` ops. Their time is data loading, most of alexnet's.
        device_type: what the times are for.
    """
    require_flag(training, "training")
    require_flag(keep_inputs, "keep_inputs")
    ops, edges = _parse(text)
    if not keep_inputs:
        dropped = {op.name for op in ops if op.description.startswith("Input")}
        ops = [op for op in ops if op.name not in dropped]
        edges = [(u, v) for u, v in edges if u not in dropped and v not in dropped]
        if not ops:
            raise InstanceError("nodes", "there are Input ops only")
    require_text(device_type, "device_types[0]")
    records = {
        op.name: {"time": op.forward * MILLISECOND, "activation_bytes": op.activation, "parameter_bytes": op.parameters}
        for op in ops
    }
    graph = built(list(records.items()), [(u, v, {}) for u, v in edges], device_type)
    if not training:
        return graph
    return with_backward(graph, np.array([[op.backward * MILLISECOND for op in ops]]), graph.memory)


def _parse(text: str) -> tuple[list[_ProfiledOp], list[tuple[str, str]]]:
    ops: list[_ProfiledOp] = []
    edges: dict[tuple[str, str], int] = {}
    index = Index()
    for i, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not line.startswith("\t"):
            ops.append(_op(line, i))
            index.add(ops[-1].name, f"line {i}")
            continue
        ends = [part.strip() for part in line.split(" -- ")]
        if len(ends) != 2:
            raise InstanceError(f"line {i}", f"{line!r} is not an edge 'a -- b'")
        if (ends[0], ends[1]) in edges:
            raise InstanceError(f"line {i}", f"{line.strip()!r} is a duplicate of line {edges[ends[0], ends[1]]}")
        edges[ends[0], ends[1]] = i
    for pair, i in edges.items():
        for name in pair:
            index.find(name, f"line {i}")
    joined = {name for pair in edges for name in pair}
    alone = next((op for op in ops if op.name not in joined), None)
    if alone is not None and len(ops) > 1:
        raise InstanceError(f"line {alone.line}", f"no edge joins {alone.name!r} to the graph: the file may be cut")
    # files list ops in the order of a hash table; by number they are in the order of their creation
    return sorted(ops, key=lambda op: (len(op.name), op.name)), list(edges)


def _op(line: str, i: int) -> _ProfiledOp:
    parts = [part.strip() for part in line.split(" -- ")]
    at = next((k for k, part in enumerate(parts) if part.startswith(FIELDS[0])), None)
    if at is None or at < 2 or not parts[0]:
        raise InstanceError(f"line {i}", f"{line!r} is not an op 'name -- description -- {FIELDS[0]}=...'")
    values: dict[str, str] = {}
    for entry in parts[at].split(", "):
        key, _, value = entry.partition("=")
        if key in values:
            raise InstanceError(f"line {i}: {key}", f"{value!r} is given after {values[key]!r}")
        values[key] = value
    forward, backward, activation, parameters = (_amount(values, key, f"line {i}: {key}") for key in FIELDS)
    return _ProfiledOp(parts[0], i, " -- ".join(parts[1:at]), forward, backward, activation, parameters)


def _amount(values: dict[str, str], key: str, field: str) -> float:
    if key not in values:
        raise InstanceError(field, "is missing")
    text = values[key].strip()
    several = key == "activation_size" and text.startswith("[") and text.endswith("]")
    terms = text[1:-1].split(";") if several else [text]
    total = 0.0
    for term in map(str.strip, terms):
        if not _NUMBER.fullmatch(term):
            raise InstanceError(field, f"{term!r} is not a number")
        if (value := float(term)) < 0:
            raise InstanceError(field, f"{value!r} is negative")
        total += value
    if not np.isfinite(total):
        raise InstanceError(field, f"{text!r} is not finite")
    return total


def listed_order(text: str, graph: OpGraph) -> IntArray:
    """Return the ops of `graph` that `text` lists, in its order, int32.

    The reader sorts ops by number, while the files list them in the order of a hash table.
    """
    position = {name: i for i, name in enumerate(graph.names)}
    listed = [line.split(" -- ")[0].strip() for line in text.splitlines() if line.strip() and line[0] != "\t"]
    found = list(dict.fromkeys(position[name] for name in listed if name in position))
    if not found:
        raise InstanceError("text", "lists no op of the graph")
    return np.array(found, dtype=np.int32)
