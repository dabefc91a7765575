"""A large cluster as pods of at most 4 x 4 x 2 servers, the size that the policy knows best.

What a state is worth is taken for the sum over the pods: a candidate is judged by what its own pod is worth with and
without it. The time between arrivals, scaled to 32 servers, is then that of a pod.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gangplan.instances.arrays import IntArray
from gangplan.instances.ramp import server_index
from gangplan.simulator.ramp import Blocks

from .rows import Desk, desk
from .tables import Long, Tables, tables

WHOLE = 64
"""Servers up to which a cluster is one pod."""

EXTENT = (4, 4, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A part of a cluster; n servers, b blocks, s shapes.

    Attributes:
        servers: of the cluster, int64 (n,).
        block: of the cluster, that each of its own blocks is, int64 (b,).
        shape: alike, int64 (s,).
        tables, desk: for its rows; pods of one extent share them.
    """

    servers: Long
    block: Long
    shape: Long
    tables: Tables
    desk: Desk


def pods(blocks: Blocks, *, choose: bool) -> list[Pod]:
    """Return the parts of a cluster; no block is in two, and blocks across parts are left out."""
    whole = tables(blocks)
    if whole.n <= WHOLE:
        servers, block, shape = (np.arange(k) for k in (whole.n, blocks.n_blocks, len(blocks.shapes)))
        return [Pod(servers, block, shape, whole, desk(whole, choose=choose))]
    topology = blocks.topology
    extents = (topology.communication_groups, topology.racks, topology.servers)
    cuts = [np.array_split(np.arange(k), -(-k // most)) for k, most in zip(extents, EXTENT, strict=True)]
    sign = np.random.default_rng(0).integers(1, 2**62, whole.n)
    signed = _signed(blocks.servers, sign)
    order = np.argsort(signed)
    made: dict[tuple[int, int, int], tuple[Blocks, Tables, Desk]] = {}
    found = []
    for group, rack, server in product(*cuts):
        extent = len(group), len(rack), len(server)
        if extent not in made:
            small = replace(topology, communication_groups=extent[0], racks=extent[1], servers=extent[2])
            own = Blocks(small)
            made[extent] = own, tables(own), desk(tables(own), choose=choose)
        own, table, place = made[extent]
        i, j, k = (axis.ravel().astype(np.int32) for axis in np.meshgrid(group, rack, server, indexing="ij"))
        servers = server_index(topology, i, j, k).astype(np.int64)
        block = order[np.searchsorted(signed[order], _signed(own.servers, sign[servers]))]
        shape = np.zeros(len(own.shapes), np.int64)
        shape[own.shape] = blocks.shape[block]
        found.append(Pod(servers, block, shape, table._replace(fast=whole.fast[shape]), place))
    return found


def _signed(servers: IntArray, sign: Long) -> Long:
    """Return the sum of the servers' numbers, by which a set of servers is known, int64 (b,)."""
    return np.asarray(np.where(servers >= 0, sign[servers], 0).sum(axis=1), dtype=np.int64)
