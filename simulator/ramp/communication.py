"""How long each transfer of a placed split job takes on RAMP: collectives where they arise, else one to one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.ramp import collective_cost, collective_seconds, coordinates
from gangplan.instances.splitting import SplitGraph


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """Seconds of every transfer.

    Attributes:
        edge: for edge (u, v) of the unsplit graph, float64 (copies[u], copies[v]): from sub-op to sub-op.
        sync: float64 (n_sub_ops,): the longest gradient exchange that a sub-op starts; 0 where it starts none.
    """

    edge: tuple[FloatArray, ...]
    sync: FloatArray


def delays(split: SplitGraph, servers: IntArray, topology: RampTopology) -> Delays:
    """Return the transfer times of a split job, given the server of each sub-op, int32 (split.n_sub_ops,).

    The edges out of a split forward op make one collective if its sub-ops and those of its children, counted once for
    each edge, are on the same servers; so do the edges into a split backward op. Every edge of it takes as long as an
    all-reduce of its bytes. Each pair of siblings of a backward op exchanges its gradients in a collective of two.
    All other edges go one to one. A transfer within a server, or of no bytes, takes no time.
    """
    groups: dict[int, list[int]] = {}
    u, v = split.graph.source.tolist(), split.graph.target.tolist()
    for e, (a, b) in enumerate(zip(u, v, strict=True)):
        groups.setdefault(b if split.graph.backward[a] else a, []).append(e)
    bounds = split.first.tolist()
    home = [servers[a:b] for a, b in pairwise(bounds)]
    edge: list[FloatArray] = [np.zeros(0)] * len(u)
    for owner, members in groups.items():
        joint = split.copies[owner] > 1 and _is_collective([(home[u[e]], home[v[e]]) for e in members], topology)
        if joint:
            size = sum(float(split.edge_bytes[e]) * len(home[u[e]]) * len(home[v[e]]) for e in members)
            seconds = collective_seconds(topology, home[owner], size)
        for e in members:
            a, b = home[u[e]][:, None], home[v[e]][None, :]
            if not split.edge_bytes[e]:
                edge[e] = np.zeros((a.size, b.size))
            elif joint:
                edge[e] = np.where(a == b, 0.0, seconds)
            else:
                edge[e] = topology.transfer_seconds(a, b, split.edge_bytes[e])
    return Delays(tuple(edge), _sync(split, home, topology))


def _is_collective(ends: list[tuple[IntArray, IntArray]], topology: RampTopology) -> bool:
    senders = np.zeros(topology.n_devices, dtype=np.int64)
    receivers = np.zeros(topology.n_devices, dtype=np.int64)
    for a, b in ends:
        senders += np.bincount(a, minlength=topology.n_devices) * len(b)
        receivers += np.bincount(b, minlength=topology.n_devices) * len(a)
    return bool((senders == receivers).all())


def _sync(split: SplitGraph, home: list[IntArray], topology: RampTopology) -> FloatArray:
    longest = np.zeros(split.n_sub_ops)
    first = split.first
    known: dict[bytes, tuple[FloatArray, FloatArray]] = {}
    for op in np.flatnonzero(split.sync_bytes).tolist():
        servers = home[op]
        key = servers.tobytes()
        if key not in known:
            known[key] = _pair_costs(topology, servers)
        fixed, slope = known[key]
        # both directions are in the one collective
        longest[first[op] : first[op + 1]] = (fixed + slope * 2 * split.sync_bytes[op]).max(axis=1)
    return longest


def _pair_costs(topology: RampTopology, servers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return seconds and seconds per byte of a collective of each pair of servers, float64 (k, k); 0 with itself."""
    differ = [1 + (axis[:, None] != axis[None, :]) for axis in coordinates(topology, servers)]
    index = (differ[0] * 4 + differ[1] * 2 + differ[2]) - 7
    table = np.array(_pair_table(topology))
    return table[index, 0], table[index, 1]


@lru_cache(maxsize=16)
def _pair_table(topology: RampTopology) -> tuple[tuple[float, float], ...]:
    return tuple(collective_cost(topology, (g, r, s)) for g in (1, 2) for r in (1, 2) for s in (1, 2))
