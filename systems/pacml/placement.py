"""Put the sub-ops of a split job on the servers of a RAMP cluster: PAC-ML's first fit."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray, frozen, require, require_number
from gangplan.instances.schedule import ramp_blocks
from gangplan.instances.splitting import SplitGraph, leaders

SERVER_MEMORY = 80e9
"""Bytes of the one GPU of a server in the published set-up."""


def first_fit(
    split: SplitGraph,
    topology: RampTopology,
    *,
    free: BoolArray | None = None,
    memory: float = SERVER_MEMORY,
) -> IntArray | None:
    """Return the server of each sub-op, int32 (split.n_sub_ops,), or None where an op finds no block.

    Ops that lead (see `gangplan.instances.splitting.leaders`) are placed in topological order: on the servers of
    the first parent with as many sub-ops, if those have the memory, else on the first block of free servers that has
    (see `gangplan.instances.ramp.blocks`). Backward ops sit with their twins. Ops of the job may share servers.

    Args:
        split: the job.
        topology: the cluster.
        free: bool (n_devices,), the servers the job may use; by default all. A single block makes a meta-block.
        memory: bytes of a server. Forward and backward sub-ops both occupy their share.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    usable = np.ones(topology.n_devices, dtype=bool) if free is None else frozen(free, np.bool_, "free", (None,))
    if len(usable) != topology.n_devices:
        raise InstanceError("free", f"has {len(usable)} entries for {topology.n_devices} servers")
    require_number(memory, "memory", positive=True)
    room = np.where(usable, float(memory), -1.0)
    graph, first, leader = split.graph, split.first, leaders(split.graph)
    require(split.copies == split.copies[leader], split.copies, "copies", "is not that of the op's twin")
    need = np.bincount(leader, weights=split.memory, minlength=graph.n_ops)
    parents: list[list[int]] = [[] for _ in range(graph.n_ops)]
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        parents[v].append(u)
    home: dict[int, IntArray] = {}
    for op in graph.topological_order().tolist():
        if leader[op] != op:
            continue
        k = int(split.copies[op])
        beside = [home[p] for p in parents[op] if p in home and split.copies[p] == k]
        servers = _with_room(beside, room, need[op])
        if servers is None:
            servers = _first(ramp_blocks(topology, k), room, need[op])
        if servers is None:
            return None
        room[servers] -= need[op]
        home[op] = servers
    placed = np.empty(split.n_sub_ops, dtype=np.int32)
    for op in range(graph.n_ops):
        placed[first[op] : first[op + 1]] = home[int(leader[op])]
    return placed


def _with_room(candidates: list[IntArray], room: FloatArray, need: float) -> IntArray | None:
    return next((servers for servers in candidates if (room[servers] >= need).all()), None)


def _first(blocks: IntArray, room: FloatArray, need: float) -> IntArray | None:
    fits = (room[blocks] >= need).all(axis=1)
    return blocks[int(np.argmax(fits))] if fits.any() else None
