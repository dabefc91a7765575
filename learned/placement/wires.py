"""What a gang sends over which links, and how long that takes beside what others send: `Costs.sync` for one gang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.rate import ring_bytes

Members = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wire:
    """The traffic of a gang where it is.

    Attributes:
        collective: of the job.
        members: for each level that it crosses, the groups it is in.
        local: bytes/s of the slowest link inside its nodes, inf if no node has two workers; of ``ps`` seconds inside.
        moved: bytes that each member sends, by level; of ``hierarchical`` and others one figure a level.
        inside: seconds inside nodes, of ``hierarchical``.
    """

    collective: str
    members: tuple[Members, ...]
    local: float
    moved: tuple[Any, ...]
    inside: float


def wire(
    collective: str,
    size: float,
    nodes: Members,
    workers: Members,
    servers: Members | None,
    group: NDArray[np.integer[Any]],
    link: FloatArray,
) -> Wire:
    """Return the traffic of a gang of these rows.

    Args:
        collective: of the job.
        size: bytes of its gradient.
        nodes, workers: of its rows, int64 (r,).
        servers: parameter servers of its rows, None without any.
        group: the group of each node at each level, the node itself first, (L + 1, m).
        link: bytes/s inside each node, (m,).
    """
    members: list[Members] = []
    for level in range(len(group) - 1):
        found = np.unique(group[level][nodes]).astype(np.int64) if len(nodes) > 1 else nodes
        if len(found) < 2:
            break
        members.append(found)
    if collective == "ps" and servers is not None:
        return _through(size, nodes, workers, servers, group, link, members)
    shared = workers > 1
    local = float(link[nodes[shared]].min()) if shared.any() else np.inf
    total = int(workers.sum())
    if collective == "hierarchical":
        most = int(workers.max())
        inside = ring_bytes(most, size) / local if most > 1 else 0.0
        moved = []
        for level, found in enumerate(members):
            above = group[level + 1][_first(group[level], found, nodes)]
            n = int(np.unique(above, return_counts=True)[1].max())
            moved.append(ring_bytes(n, size) if n > 1 else 0.0)
        return Wire(collective, tuple(members), local, tuple(moved), inside)
    sent = ring_bytes(total, size) if collective == "ring" else 2 * size * (total > 1)
    return Wire(collective, tuple(members), local, (sent,), 0.0)


def seconds(wire: Wire, load: Sequence[FloatArray], bandwidth: Sequence[float], own: float) -> float:
    """Return the seconds of synchronisation in a step.

    Args:
        wire: what is sent.
        load: of each level, the duties of the gangs that cross each member's link.
        bandwidth: bytes/s, by level.
        own: the gang's own duty where it is in `load`, else 0.
    """
    if wire.collective == "ps":
        worst = wire.inside
        for level, members in enumerate(wire.members):
            gangs = 1 + np.maximum(load[level][members] - own, 0.0)
            worst = max(worst, float((wire.moved[level] * gangs).max()) / bandwidth[level])
        return worst
    rate = [
        bandwidth[level] / (1 + max(0.0, float(load[level][members].max()) - own))
        for level, members in enumerate(wire.members)
    ]
    if wire.collective == "hierarchical":
        total, speed = wire.inside, wire.local
        for level, moved in enumerate(wire.moved):
            speed = rate[level] if level == 0 else min(speed, rate[level])
            total += moved / speed
        return total
    return float(wire.moved[0] / min([wire.local, *rate])) if wire.moved[0] else 0.0


def _first(group: NDArray[np.integer[Any]], members: Members, nodes: Members) -> Members:
    """Return a node of each member, int64."""
    _, first = np.unique(group[nodes], return_index=True)
    return np.asarray(nodes[first], dtype=np.int64)


def _through(
    size: float,
    nodes: Members,
    workers: Members,
    servers: Members,
    group: NDArray[np.integer[Any]],
    link: FloatArray,
    members: list[Members],
) -> Wire:
    total, count = int(workers.sum()), max(int(servers.sum()), 1)
    inside = float((size * workers * servers / count / link[nodes]).max())
    moved = []
    for level, found in enumerate(members):
        at = np.searchsorted(found, group[level][nodes])
        w, p = np.bincount(at, workers, len(found)), np.bincount(at, servers, len(found))
        moved.append(size * (w * (count - p) + p * (total - w)) / count)
    return Wire("ps", tuple(members), np.inf, tuple(moved), inside)
