"""One job's graph on one cluster, with what is placed so far: ops, devices and their types, and the network."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import GraphProblem

from .encoding import Encoding, Floats, first_positive, log_over, mean, over, signed_log_over
from .paths import longest
from .topology import add_racks, groups

VARIANTS = ("contiguous", "convex", "free")


def encode_partition(problem: GraphProblem, device: NDArray[np.integer[Any]] | None = None) -> Encoding:
    """Encode a partition problem of any objective.

    Types are ``ops``, ``devices``, ``kinds`` (of devices), ``classes`` (of colocated ops), ``racks`` and ``problem``.
    Seconds are given as shares of the mean op or of an even load, bytes of the mean or of an even share of memory, so
    neither units nor sizes show. Relations, each with its reverse: ops ``feed`` ops, ``mirror`` their twins, ``run`` on
    kinds (only those that can), are ``of`` classes that share a device, are ``on`` devices; devices are ``of`` kinds
    and ``in`` racks.

    Args:
        problem: the problem.
        device: of each op, -1 for one that is not placed yet, int (n,); none is by default.
    """
    graph, cluster, encoding = problem.graph, problem.cluster, Encoding()
    n, d = graph.n_ops, cluster.n_devices
    device = np.full(n, -1) if device is None else np.asarray(device)
    time = problem.time()
    best = np.where(np.isfinite(time).any(axis=0), time.min(axis=0), 0.0)
    send = problem.transfer()
    second = first_positive(mean(best), mean(send))
    even = first_positive(float(best.sum()) / d, second)
    share = first_positive(float(graph.memory.sum()) / d)
    _add_ops(encoding, problem, device, best, send, second, even)
    _add_kinds(encoding, problem, time, best, second, even, share)
    _add_devices(encoding, problem, device, time, best, even, share)
    found = groups(cluster.topology)
    size = mean(graph.output_bytes())
    racks = {"move": log_over(size / found.bandwidth, second), "latency": log_over(found.latency, second)}
    add_racks(encoding, found, "devices", racks)
    _add_classes(encoding, problem, best, even, share)
    encoding.join(("ops", "mirror", "ops"), np.flatnonzero(graph.twin >= 0), graph.twin[graph.twin >= 0])
    output = graph.output_bytes()[graph.source]
    bandwidth, latency = cluster.topology.slowest_link()
    seconds = np.where(graph.edge_bytes > 0, latency + graph.edge_bytes / bandwidth, 0.0)
    edges = {"move": log_over(seconds, second), "of_output": over(graph.edge_bytes, output)}
    encoding.join(("ops", "feed", "ops"), graph.source, graph.target, edges)
    placed = np.flatnonzero(device >= 0)
    encoding.join(("ops", "on", "devices"), placed, device[placed])
    tight = float(np.where(np.isfinite(problem.capacity()), problem.capacity(), np.inf).sum())
    about: dict[str, Any] = {name: float(problem.variant == name) for name in VARIANTS}
    about |= {name: float(problem.objective == name) for name in ("throughput", "step", "latency", "stages")}
    about |= {
        "contention": float(getattr(problem, "contention", False)),
        "ops_per_device": np.log(n / d),
        "moving": log_over(float(send.sum()), float(best.sum())),
        "memory": over(float(graph.memory.sum()), tight),
        "placed": len(placed) / n,
    }
    encoding.add("problem", 1, about)
    return encoding


def _add_ops(
    encoding: Encoding, problem: GraphProblem, device: Any, best: Floats, send: Floats, second: float, even: float
) -> None:
    graph = problem.graph
    n = graph.n_ops
    before, after = longest(graph, best)
    path = first_positive(float(after.max(initial=0.0)))
    hops, hops_after = longest(graph, np.ones(n))
    room = problem.capacity().min(initial=np.inf)
    into, out = np.bincount(graph.target, minlength=n), np.bincount(graph.source, minlength=n)
    columns = {
        "time": log_over(best, second),
        "load": over(best, even),
        "send": log_over(send, second),
        "send_load": over(send, even),
        "memory": log_over(graph.memory, mean(graph.memory)),
        "room": over(graph.memory, room),
        "parameters": log_over(graph.parameter_bytes, mean(graph.parameter_bytes)),
        "activations": log_over(graph.activation_bytes, mean(graph.activation_bytes)),
        "before": before / path,
        "after": after / path,
        "depth": hops / hops_after.max(initial=1.0),
        "height": hops_after / hops_after.max(initial=1.0),
        "into": np.log1p(into),
        "out": np.log1p(out),
        "backward": graph.backward,
        "placed": device >= 0,
    }
    encoding.add("ops", n, columns)


def _add_kinds(
    encoding: Encoding,
    problem: GraphProblem,
    time: Floats,
    best: Floats,
    second: float,
    even: float,
    share: float,
) -> None:
    cluster = problem.cluster
    t, op = np.nonzero(np.isfinite(time))
    slower = over(time[t, op], best[op])
    mine = np.bincount(t, minlength=len(time))
    memory = np.array([np.inf if x.memory is None else x.memory for x in cluster.device_types])
    columns = {
        "slower": np.log1p(np.bincount(t, weights=slower, minlength=len(time)) / np.maximum(mine, 1)),
        "runs": mine / time.shape[1],
        "devices": cluster.counts() / cluster.n_devices,
        "memory": log_over(np.where(np.isfinite(memory), memory, 0.0), share),
        "unlimited": ~np.isfinite(memory),
        "host": [x.host for x in cluster.device_types],
    }
    encoding.add("kinds", len(time), columns)
    seconds = {
        "time": log_over(time[t, op], second),
        "load": over(time[t, op], even),
        "slower": np.log1p(slower),
    }
    encoding.join(("ops", "run", "kinds"), op, t, seconds)


def _add_devices(
    encoding: Encoding, problem: GraphProblem, device: Any, time: Floats, best: Floats, even: float, share: float
) -> None:
    cluster = problem.cluster
    d, placed = cluster.n_devices, np.flatnonzero(device >= 0)
    on = device[placed]
    seconds = time[cluster.type_of[on], placed]
    load = np.bincount(on, weights=np.where(np.isfinite(seconds), seconds, 0.0), minlength=d)
    held = np.bincount(on, weights=problem.graph.memory[placed], minlength=d)
    capacity = problem.capacity()
    finite = np.isfinite(capacity)
    columns = {
        "memory": log_over(np.where(finite, capacity, 0.0), share),
        "unlimited": ~finite,
        "held": over(held, capacity),
        "spare": signed_log_over(np.where(finite, capacity - held, 0.0), share),
        "load": over(load, even),
        "used": np.bincount(on, minlength=d) > 0,
        "host": problem.hosts(),
    }
    encoding.add("devices", d, columns)
    encoding.join(("devices", "of", "kinds"), np.arange(d), cluster.type_of)


def _add_classes(encoding: Encoding, problem: GraphProblem, best: Floats, even: float, share: float) -> None:
    graph = problem.graph
    member = np.flatnonzero(graph.colocation >= 0)
    found, which = np.unique(graph.colocation[member], return_inverse=True)
    k = len(found)
    columns = {
        "members": np.log1p(np.bincount(which, minlength=k)),
        "load": over(np.bincount(which, weights=best[member], minlength=k), even),
        "memory": over(np.bincount(which, weights=graph.memory[member], minlength=k), share),
    }
    encoding.add("classes", k, columns)
    encoding.join(("ops", "of", "classes"), member, which)
