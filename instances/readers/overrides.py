"""Replace parts of the cluster that a file brings along."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..arrays import require_number
from ..cluster import Cluster, require_count
from ..errors import InstanceError
from ..partition import GraphProblem
from ..topology import TreeTopology

Problem = TypeVar("Problem", bound=GraphProblem)


def with_cluster(problem: Problem, devices: int | None, memory: float | None, bandwidth: float | None) -> Problem:
    """Return `problem` with another number of accelerators, and other memory and links, where given.

    Args:
        problem: what the file says.
        devices: accelerators; hosts stay. Needs one type of accelerator and one level of links.
        memory: bytes of every accelerator.
        bandwidth: bytes/s of every link. Needs one level of links.

    Raises:
        InstanceError: naming the argument and why it cannot apply.
    """
    if devices is not None:
        require_count(devices, "devices")
    require_number(memory, "memory", positive=True, optional=True)
    require_number(bandwidth, "bandwidth", positive=True, optional=True)
    cluster = problem.cluster
    kinds = tuple(t if t.host or memory is None else replace(t, memory=memory) for t in cluster.device_types)
    cluster = replace(cluster, device_types=kinds)
    if devices is not None or bandwidth is not None:
        cluster = _relinked(cluster, devices, bandwidth)
    return replace(problem, cluster=cluster)


def _relinked(cluster: Cluster, devices: int | None, bandwidth: float | None) -> Cluster:
    given, value = ("bandwidth", bandwidth) if devices is None else ("devices", devices)
    topology = cluster.topology
    if not isinstance(topology, TreeTopology) or len(topology.levels) > 1:
        raise InstanceError(given, f"{value!r} says not where in a cluster of several levels; edit the document")
    level = topology.levels[0]
    type_of = cluster.type_of
    if devices is not None:
        accelerators = [i for i, kind in enumerate(cluster.device_types) if not kind.host]
        if len(accelerators) != 1:
            raise InstanceError(given, f"{value!r} says not of which of {len(accelerators)} types; edit the document")
        hosts = type_of[type_of != accelerators[0]]
        if not devices and not len(hosts):
            raise InstanceError(given, f"{value!r} leaves no device")
        type_of = np.concatenate([np.full(devices, accelerators[0], dtype=np.int32), hosts])
    level = level if bandwidth is None else replace(level, bandwidth=bandwidth)
    group = np.zeros((1, len(type_of)), dtype=np.int32)
    return Cluster(cluster.device_types, type_of, TreeTopology((level,), group))
