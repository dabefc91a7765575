"""From the profile of a model to a partition problem.

Bytes are those of the model's own types. While training, a parameter takes 16 bytes (Rajbhandari et al., "ZeRO",
SC 2020, section 3.1: 16-bit weight and gradient with 32-bit copy, momentum and variance; as many with all four of
weight, gradient, momentum and variance in 32 bits), and an op keeps its output for the backward pass, with whatever
else torch saves for it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..arrays import FloatArray, require_choice, require_number, sums
from ..cluster import Cluster, DeviceType
from ..devices import EFFICIENCY, LAUNCH, PEAK_32, roofline, server
from ..errors import InstanceError
from ..graph import OpGraph, with_backward
from ..partition import PartitionProblem
from .cost import copy_bandwidth, measure, require_device
from .load import LoadedModel
from .ops import Ops, classes, kernels, output_bytes, passed_bytes, segments, tied_ops, weights, whole_modules
from .program import on_tensors
from .trace import trace

HERE = "here"
"""Name of the device type that stands for this machine."""
TIED = ("copy", "colocate")


@dataclass(frozen=True, slots=True)
class Modelled:
    """A model as a problem, and what it was made from."""

    problem: PartitionProblem
    ops: Ops


def model_problem(
    model: LoadedModel,
    *,
    device_type: str | None = None,
    devices: int = 4,
    memory: float | None = None,
    bandwidth: float | None = None,
    variant: str = "contiguous",
    training: bool = True,
    efficiency: float = EFFICIENCY,
    launch: float = LAUNCH,
    measured: str | None = None,
    tied: str = "copy",
    whole: Sequence[str] = (),
    pipelining: bool = False,
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
        launch: seconds that a kernel takes at least, since the processor has to start it; 0 with CUDA graphs.
        measured: ``cpu`` or ``cuda``: make the devices like this machine's, named ``here``, with times measured on it.
        tied: what to do with a parameter of several ops: ``copy`` it to each, or ``colocate`` the ops.
        whole: patterns of module names; the ops of a module that matches share a device.
        pipelining: allow only plans that `torch.distributed.pipelining` can split.
    """
    require_choice(tied, "tied", TIED)
    require_number(launch, "launch")
    if measured is not None:
        require_device(measured)
    cluster = _cluster(device_type, devices, memory, bandwidth, measured)
    kinds = [] if measured and device_type is None else [server(1, device_type or "A100").device_types[0]]
    ops = Ops(trace(model if measured in (None, "cpu") else _moved(model, measured)))
    if not ops.ops:
        raise InstanceError("model", f"{model.name!r} computes nothing")
    rows = [_modelled(ops, kind, efficiency, launch) for kind in kinds]
    if measured:
        kinds.append(cluster.device_types[0])
        rows.append(_measured(ops, training, measured))
    groups = [*whole_modules(ops, model, whole), *ops.written(), *(tied_ops(ops) if tied == "colocate" else [])]
    order: list[tuple[int, int]] = []
    if pipelining:
        parts = segments(ops)
        groups += [set(part) for part in parts]
        order = [(a[-1], b[0]) for a, b in pairwise(parts)]
    graph = _graph(ops, [kind.name for kind in kinds], rows, groups, order, tied, training)
    return Modelled(PartitionProblem(graph, cluster, variant), ops)


def _moved(model: LoadedModel, device: str) -> LoadedModel:
    """Return a copy of a model and its inputs on another device."""
    args, kwargs = on_tensors(lambda x: x.to(device), (model.args, model.kwargs))
    return LoadedModel(model.name, copy.deepcopy(model.module).to(device), args, kwargs)


def _cluster(
    device_type: str | None, devices: int, memory: float | None, bandwidth: float | None, measured: str | None
) -> Cluster:
    if not measured:
        return server(devices, device_type or "A100", memory, bandwidth)
    require_number(bandwidth, "bandwidth", positive=True, optional=True)
    return server(devices, HERE, memory, copy_bandwidth(measured) if bandwidth is None else bandwidth)


def _modelled(ops: Ops, kind: DeviceType, efficiency: float, launch: float) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of each op, forward and backward: those of its kernels, one after the other.

    The processor starts the next kernel while one runs, so that each takes the longer of roofline and launch.
    """
    peaks = {1: kind.flops, 2: kind.flops, 4: PEAK_32[kind.name], 8: PEAK_32[kind.name] / 2}
    rows = []
    for backward in (False, True):
        found, where = kernels(ops, backward)
        flops, moved, launches = (
            np.array([getattr(k, x) for k in found], dtype=float) for x in ("flops", "moved", "launches")
        )
        peak = np.array([peaks[k.precision] for k in found], dtype=float)
        seconds = np.maximum(roofline(kind, flops, moved, efficiency, peak), launches * launch)
        rows.append(sums(where, seconds, len(ops.ops)))
    return rows[0], rows[1]


def _measured(ops: Ops, training: bool, device: str) -> tuple[FloatArray, FloatArray]:
    seconds = measure(ops.profile, training, device=device)
    forward, backward = (np.array([sum(x[node] for node in op.nodes) for op in ops.ops]) for x in seconds)
    return forward, backward


def _graph(
    ops: Ops,
    kinds: list[str],
    rows: list[tuple[FloatArray, FloatArray]],
    groups: list[set[int]],
    order: list[tuple[int, int]],
    tied: str,
    training: bool,
) -> OpGraph:
    n = len(ops.ops)
    passed = {**dict.fromkeys(order, ()), **ops.edges}
    edges = sorted(passed)
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
        edge_bytes=np.array([passed_bytes(ops, passed[edge]) for edge in edges]),
        colocation=classes(n, groups),
    )
    if not training:
        return forward
    graph = with_backward(forward, np.array([row[1] for row in rows]), np.zeros(n))
    sizes = graph.edge_bytes.copy()
    wanted = [[name for name in passed[edge] if ops.profile.has_gradient(name)] for edge in edges]
    # the second m edges are the first reversed; whole numbers among the values have no gradient
    sizes[len(edges) : 2 * len(edges)] = [passed_bytes(ops, names) for names in wanted]
    return replace(graph, edge_bytes=sizes)


def _kept(ops: Ops) -> FloatArray:
    return np.array([sum(ops.profile.kept[node] for node in op.nodes) for op in ops.ops])
