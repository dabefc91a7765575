"""From the profile of a model to a partition problem.

Bytes are those of the model's own types. While training, a parameter takes 16 bytes (Rajbhandari et al., "ZeRO",
SC 2020, section 3.1: 16-bit weight and gradient with 32-bit copy, momentum and variance; as many with all four of
weight, gradient, momentum and variance in 32 bits), and an op keeps its output for the backward pass, with whatever
else torch saves for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, require_number, sums
from ..cluster import Cluster, DeviceType
from ..devices import EFFICIENCY, roofline, server
from ..errors import InstanceError, unknown
from ..graph import OpGraph, with_backward
from ..partition import PartitionProblem
from .amounts import kernels, output_bytes, passed_bytes, weights
from .load import Model
from .measure import copy_bandwidth, measure
from .ops import Ops
from .together import classes, tied_ops, whole_modules
from .trace import trace

HERE = "here"
"""Name of the device type that stands for this machine."""
TIED = ("copy", "colocate")


@dataclass(frozen=True, slots=True)
class Modelled:
    """A model as a problem, and what it was made from.

    Attributes:
        problem: the partition problem.
        ops: the forward ops; those of the graph begin with them, in their order.
    """

    problem: PartitionProblem
    ops: Ops


def model_problem(
    model: Model,
    *,
    device_type: str | None = None,
    devices: int = 4,
    memory: float | None = None,
    bandwidth: float | None = None,
    variant: str = "contiguous",
    training: bool = True,
    efficiency: float = EFFICIENCY,
    measured: bool = False,
    tied: str = "copy",
    whole: Sequence[str] = (),
) -> Modelled:
    """Trace a model and make a partition problem of it.

    Args:
        model: see `load_model`.
        device_type: a name of the catalogue, A100 by default; with `measured` none is needed, and one that is given
            adds its times to the graph.
        devices, memory, bandwidth: see `gangplan.instances.devices.server`. By default a measured device has no limit
            of memory, and a link as fast as this machine copies memory.
        variant: of the partition problem.
        training: add the backward ops.
        efficiency: share of the peak FLOP/s that is reached, see `roofline`.
        measured: make the devices machines like this one, named ``here``, with times measured on it.
        tied: what to do with a parameter of several ops: ``copy`` it to each, or ``colocate`` the ops.
        whole: patterns of module names; the ops of a module that matches share a device.

    Raises:
        InstanceError: naming the argument and the value found, or why the model cannot be traced.
    """
    if tied not in TIED:
        raise InstanceError("tied", unknown(tied, TIED))
    cluster = _cluster(device_type, devices, memory, bandwidth, measured)
    kinds = [] if measured and device_type is None else [server(1, device_type or "A100").device_types[0]]
    ops = Ops(trace(model))
    if not ops.ops:
        raise InstanceError("model", f"{model.name!r} computes nothing")
    rows = [_modelled(ops, kind, efficiency) for kind in kinds]
    if measured:
        kinds.append(cluster.device_types[0])
        rows.append(_measured(ops, training))
    groups = [*whole_modules(ops, model, whole), *ops.written(), *(tied_ops(ops) if tied == "colocate" else [])]
    graph = _graph(ops, [kind.name for kind in kinds], rows, groups, tied, training)
    return Modelled(PartitionProblem(graph, cluster, variant), ops)


def _cluster(
    device_type: str | None, devices: int, memory: float | None, bandwidth: float | None, measured: bool
) -> Cluster:
    if not measured:
        return server(devices, device_type or "A100", memory, bandwidth)
    require_number(bandwidth, "bandwidth", positive=True, optional=True)
    return server(devices, HERE, memory, copy_bandwidth() if bandwidth is None else bandwidth)


def _modelled(ops: Ops, kind: DeviceType, efficiency: float) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of each op, forward and backward: those of its kernels, one after the other."""
    rows = []
    for backward in (False, True):
        found, where = kernels(ops, backward)
        flops, moved = (np.array([getattr(k, x) for k in found], dtype=float) for x in ("flops", "moved"))
        rows.append(sums(where, roofline(kind, flops, moved, efficiency), len(ops.ops)))
    return rows[0], rows[1]


def _measured(ops: Ops, training: bool) -> tuple[FloatArray, FloatArray]:
    seconds = measure(ops.profile, training)
    forward, backward = (np.array([sum(x[node] for node in op.nodes) for op in ops.ops]) for x in seconds)
    return forward, backward


def _graph(
    ops: Ops,
    kinds: list[str],
    rows: list[tuple[FloatArray, FloatArray]],
    groups: list[set[int]],
    tied: str,
    training: bool,
) -> OpGraph:
    n = len(ops.ops)
    edges = list(ops.edges)
    source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    output = np.array([output_bytes(ops, op) for op in ops.ops])
    owned, held = weights(ops, tied, training)
    forward = OpGraph(
        names=tuple(op.name for op in ops.ops),
        device_types=tuple(kinds),
        time=np.array([row[0] for row in rows]),
        memory=held + output + (_kept(ops) if training else 0.0),
        parameter_bytes=owned,
        activation_bytes=output,
        source=source,
        target=target,
        edge_bytes=np.array([passed_bytes(ops, ops.edges[edge]) for edge in edges]),
        colocation=classes(n, groups),
        twin=np.full(n, -1, dtype=np.int32),
        backward=np.zeros(n, dtype=bool),
    )
    if not training:
        return forward
    graph = with_backward(forward, np.array([row[1] for row in rows]), np.zeros(n))
    sizes = graph.edge_bytes.copy()
    wanted = [[name for name in ops.edges[edge] if ops.profile.has_gradient(name)] for edge in edges]
    # the second m edges are the first reversed; whole numbers among the values have no gradient
    sizes[len(edges) : 2 * len(edges)] = [passed_bytes(ops, names) for names in wanted]
    return replace(graph, edge_bytes=sizes)


def _kept(ops: Ops) -> FloatArray:
    return np.array([sum(ops.profile.kept[node] for node in op.nodes) for op in ops.ops])
