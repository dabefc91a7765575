"""Replace parts of the cluster that a file brings along."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from ..arrays import require_count, require_number
from ..cluster import Cluster, Level, TreeTopology
from ..errors import InstanceError
from ..partition import GraphProblem

Problem = TypeVar("Problem", bound=GraphProblem)
LEVELS = ("server", "rack", "pod")
"""What groups of devices are called, from the inside out; those beyond by their number."""


def shape(text: object) -> tuple[int, ...]:
    """Return the members of a group of each level that ``2x8`` names, the innermost first: (8, 2)."""
    if not isinstance(text, str) or not re.fullmatch(r"[1-9]\d{0,9}(x[1-9]\d{0,9})*", text, re.ASCII):
        raise InstanceError("cluster", f"{text!r} is not like 8 (devices) or 2x8 (two nodes of eight)")
    members = tuple(int(part) for part in reversed(text.split("x")))
    require_count(prod(members), "cluster")
    return members


def arranged(problem: Problem, members: tuple[int, ...], bandwidth: Sequence[float] | None) -> Problem:
    """Return `problem` on a tree of its devices' type: `members` of a group of each level, the innermost first.

    Args:
        problem: what the file says.
        members: see `shape`.
        bandwidth: bytes/s of the links of each level, the innermost first; what the file says if there is but one.
    """
    used = np.flatnonzero(problem.cluster.counts())
    name = "x".join(map(str, reversed(members)))
    if len(used) > 1:
        raise InstanceError("cluster", f"{name} says not where devices of {len(used)} types are; edit the document")
    own, latency = problem.cluster.topology.slowest_link()
    speeds = (own,) if bandwidth is None and len(members) == 1 else tuple(bandwidth or ())
    if len(speeds) != len(members):
        words = f"{len(speeds)} values for {len(members)} levels of links; a cluster of {name} has one for each"
        raise InstanceError("bandwidth", f"{words}, inside a {LEVELS[0]} first")
    names = (*LEVELS, *(f"level {i + 1}" for i in range(len(LEVELS), len(speeds))))
    levels = tuple(Level(names[i], _speed(i, x), latency) for i, x in enumerate(speeds))
    type_of = np.full(prod(members), used[0], dtype=np.int32)
    cluster = Cluster(problem.cluster.device_types, type_of, TreeTopology.regular(levels, members))
    return replace(problem, cluster=cluster)


def with_speeds(problem: Problem, bandwidth: Sequence[float]) -> Problem:
    """Return `problem` with other links: bytes/s of each level of its tree, the innermost first."""
    topology = problem.cluster.topology
    has = len(topology.levels) if isinstance(topology, TreeTopology) else 0
    if not isinstance(topology, TreeTopology) or has != len(bandwidth):
        raise InstanceError("bandwidth", f"{len(bandwidth)} values, the cluster has {has} levels of links")
    levels = tuple(
        replace(level, bandwidth=_speed(i, x))
        for i, (level, x) in enumerate(zip(topology.levels, bandwidth, strict=True))
    )
    return replace(problem, cluster=replace(problem.cluster, topology=replace(topology, levels=levels)))


def _speed(i: int, value: float) -> float:
    require_number(value, f"bandwidth[{i}]", positive=True)
    return value


def with_cluster(problem: Problem, devices: int | None, memory: float | None, bandwidth: float | None) -> Problem:
    """Return `problem` with another number of accelerators, and other memory and links, where given.

    Args:
        problem: what the file says.
        devices: accelerators; hosts stay. Needs one type of accelerator and one level of links.
        memory: bytes of every accelerator.
        bandwidth: bytes/s of every link. Needs one level of links.
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
