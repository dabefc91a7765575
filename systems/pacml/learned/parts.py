"""A large cluster as parts of at most 32 servers, the size that the policy knows best.

What a state is worth is taken for the sum over the parts: a candidate is judged by what its own part is worth with and
without it. The time between arrivals, scaled to 32 servers, is then that of a part.

Pods are boxes of the extent in which the collectives of every degree are as fast as they can be on the cluster: with
eight servers in a rack a part keeps racks whole, for jobs inside one rack need no other link.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from gangplan.instances.arrays import IntArray
from gangplan.instances.ramp import collective_cost, server_index

from ..jobs import Blocks
from .features import DegreeDecision
from .tables import BlockTables, Long, tables

WHOLE = 64
"""Servers up to which a cluster is one part."""

SERVERS = 32
"""Of a part, at most."""

Extent = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPart:
    """A part of a cluster; n servers, b blocks.

    Attributes:
        servers: of the cluster, int64 (n,).
        block: of the cluster, that each of its own blocks is, int64 (b,).
        decision: for its rows; parts of one extent share it.
    """

    servers: Long
    block: Long
    decision: DegreeDecision


def parts(blocks: Blocks, *, choose: bool) -> list[ClusterPart]:
    """Return the parts of a cluster, one if no block is chosen; no block is in two, those across parts are left out."""
    whole = tables(blocks)
    if whole.n <= WHOLE or not choose:
        return [ClusterPart(np.arange(whole.n), np.arange(blocks.n_blocks), DegreeDecision(whole, choose=choose))]
    topology = blocks.topology
    cuts = [np.array_split(np.arange(k), -(-k // most)) for k, most in zip(_size(blocks), extent(blocks), strict=True)]
    sign = np.random.default_rng(0).integers(1, 2**62, whole.n)
    signed = _signed(blocks.servers, sign)
    order = np.argsort(signed)
    made: dict[Extent, DegreeDecision] = {}
    found = []
    for group, rack, server in product(*cuts):
        i, j, k = (axis.ravel().astype(np.int32) for axis in np.meshgrid(group, rack, server, indexing="ij"))
        servers = server_index(topology, i, j, k).astype(np.int64)
        size = len(group), len(rack), len(server)
        if size not in made:
            made[size] = DegreeDecision(_part(blocks, np.asarray(whole.fast), servers))
        # a shift takes the blocks of the first part of an extent to those of this one
        local = np.asarray(made[size].tables.servers)
        shifted = np.where(local >= 0, servers[local], -1)
        block = order[np.searchsorted(signed[order], _signed(shifted, sign))]
        found.append(ClusterPart(servers, block, made[size]))
    return found


def extent(blocks: Blocks) -> Extent:
    """Return what a part extends over: communication groups, racks, servers in a rack.

    Of the boxes of at most `SERVERS` servers that with the fastest collectives, in the mean over degrees and beside the
    fastest on the cluster; then that with the most servers, then with the most places for blocks.
    """
    whole = _size(blocks)
    degree = np.array([i for i, _ in blocks.shapes])
    spans = np.array([span for _, span in blocks.shapes])
    slope = np.array([collective_cost(blocks.topology, span)[1] for _, span in blocks.shapes])
    least = np.array([slope[degree == i].min() for i in range(len(blocks.degrees))])
    best, found = (-1.0, 0, 0), (1, 1, 1)
    for box in product(*(range(1, min(k, SERVERS) + 1) for k in whole)):
        # a cluster that the box does not divide is cut into smaller ones
        small = [k // -(-k // most) for k, most in zip(whole, box, strict=True)]
        if np.prod(box) > SERVERS:
            continue
        inside = (spans <= small).all(axis=1)
        # how near the fastest inside comes to the fastest of all, 0 if there is none
        here = [slope[inside & (degree == i)].min(initial=np.inf) for i in range(len(least))]
        fast = [1.0 if own <= all_ else all_ / own for own, all_ in zip(here, least, strict=True)]
        places = int(np.prod(np.array(small) - spans[inside] + 1, axis=1).sum())
        score = round(float(np.mean(fast)), 6), int(np.prod(small)), places
        if score > best:
            best, found = score, (box[0], box[1], box[2])
    return found


def _size(blocks: Blocks) -> Extent:
    topology = blocks.topology
    return topology.communication_groups, topology.racks, topology.servers


def _part(blocks: Blocks, fast: Long, servers: Long) -> BlockTables:
    """Return the arrays of some servers, with all blocks of the cluster that lie inside."""
    local = np.full(blocks.n_servers + 1, -1, np.int32)  # -1 fills up, and is the last entry
    local[servers] = np.arange(len(servers))
    member = np.append(np.isin(np.arange(blocks.n_servers), servers), True)
    block = np.flatnonzero(member[blocks.servers].all(axis=1))
    rows = local[blocks.servers[block]]
    return BlockTables(rows, blocks.degree[block], blocks.shape[block], fast, len(servers))


def _signed(servers: IntArray, sign: Long) -> Long:
    """Return the sum of the servers' numbers, by which a set of servers is known, int64 (b,)."""
    return np.asarray(np.where(servers >= 0, sign[servers], 0).sum(axis=1), dtype=np.int64)
