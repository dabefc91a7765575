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
    levels = tuple(Level(names[i], x, latency) for i, x in enumerate(speeds))
    type_of = np.full(prod(members), used[0], dtype=np.int32)
    cluster = Cluster(problem.cluster.device_types, type_of, TreeTopology.regular(levels, members))
    return replace(problem, cluster=cluster)


def with_speeds(problem: Problem, bandwidth: Sequence[float]) -> Problem:
    """Return `problem` with other links: bytes/s of each level of its tree, the innermost first."""
    topology = problem.cluster.topology
    has = len(topology.levels) if isinstance(topology, TreeTopology) else 0
    if not isinstance(topology, TreeTopology) or has != len(bandwidth):
        raise InstanceError("bandwidth", f"{len(bandwidth)} values, the cluster has {has} levels of links")
    levels = tuple(replace(level, bandwidth=x) for level, x in zip(topology.levels, bandwidth, strict=True))
    return replace(problem, cluster=replace(problem.cluster, topology=replace(topology, levels=levels)))


def with_cluster(problem: Problem, devices: int | None, memory: float | None) -> Problem:
    """Return `problem` with another number of accelerators, hosts staying, and bytes of each of them, where given."""
    require_number(memory, "memory", positive=True, optional=True)
    cluster = problem.cluster
    kinds = tuple(t if t.host or memory is None else replace(t, memory=memory) for t in cluster.device_types)
    cluster = replace(cluster, device_types=kinds)
    return replace(problem, cluster=cluster if devices is None else _resized(cluster, devices))


def _resized(cluster: Cluster, devices: int) -> Cluster:
    require_count(devices, "devices")
    topology, type_of = cluster.topology, cluster.type_of
    if not isinstance(topology, TreeTopology) or len(topology.levels) > 1:
        raise InstanceError("devices", f"{devices!r} says not where in a cluster of several levels; edit the document")
    accelerators = [i for i, kind in enumerate(cluster.device_types) if not kind.host]
    if len(accelerators) != 1:
        raise InstanceError("devices", f"{devices!r} says not of which of {len(accelerators)} types; edit the document")
    hosts = type_of[type_of != accelerators[0]]
    if not devices and not len(hosts):
        raise InstanceError("devices", f"{devices!r} leaves no device")
    type_of = np.concatenate([np.full(devices, accelerators[0], dtype=np.int32), hosts])
    return Cluster(cluster.device_types, type_of, TreeTopology(topology.levels, np.zeros((1, len(type_of)), np.int32)))
