"""RAMP as PAC-ML uses it: the shapes of server blocks, and what a collective over such a block costs.

Sources: Ottino et al. 2022 (RAMP), Parsonson et al., arXiv 2301.13799 (PAC-ML) and its published code.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isqrt, log2, prod
from typing import Any

import numpy as np

from .arrays import IntArray, require_number
from .cluster import RampTopology
from .errors import ENTRIES

DEVICE_FLOPS = 130e12
"""FLOP/s of a device when it adds up received messages."""

DEVICE_BANDWIDTH = 2e12
"""Bytes/s of a device's memory when it adds up received messages."""

BYTES_PER_VALUE = 2

Shape = tuple[int, int, int]
"""How many communication groups, racks and servers per rack a block spans."""


def server_index(topology: RampTopology, group: IntArray, rack: IntArray, server: IntArray) -> IntArray:
    """Return the device at each coordinate, int32: servers vary fastest, communication groups slowest."""
    return np.asarray((group * topology.racks + rack) * topology.servers + server, dtype=np.int32)


def coordinates(topology: RampTopology, device: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return communication group, rack and server in the rack of each device."""
    rack, server = np.divmod(device, topology.servers)
    return rack // topology.racks, rack % topology.racks, server


def block_shapes(topology: RampTopology, size: int) -> list[Shape]:
    """Return the box shapes of `size` servers that PAC-ML tries, in its order and without repeats.

    For each factorisation size = a b with falling a, and b at most the servers of a rack: (sqrt a, sqrt a, b), then
    (a, 1, b) and (a, b, 1), each where it fits into the cluster. The published code also wants a to be at most the
    racks; that is the same where there are as many communication groups as racks, and leaves wider clusters without
    blocks: 3 x 1 x 2 without one of 6.
    """
    require_number(size, "size", positive=True, whole=True)
    shapes: list[Shape] = []
    low = [b for b in range(1, isqrt(size) + 1) if size % b == 0]
    for b in sorted({*low, *(size // b for b in low)}):
        if b > topology.servers:
            break
        a = size // b
        root = isqrt(a)
        if root * root == a:
            shapes.append((root, root, b))
        shapes += [(a, 1, b), (a, b, 1)]
    fits = (s for s in shapes if s[0] <= topology.communication_groups and s[1] <= topology.racks)
    return list(dict.fromkeys(fits))


def blocks(topology: RampTopology, size: int) -> Iterator[IntArray]:
    """Yield the blocks of `size` servers in the order of first fit: devices, int32 (size,), one for each sub-op.

    First the boxes by shape and then by origin; after them the diagonals, whose servers differ in communication
    group and rack both. One server is a box and no diagonal.
    """
    for _, rows in _shaped(topology, size):
        yield from rows


def is_block(topology: RampTopology, servers: IntArray) -> bool:
    """Return whether the servers, int32 (size,), are those of a block."""
    size, axes = len(servers), coordinates(topology, np.sort(servers))
    shape = tuple(int(np.ptp(axis)) + 1 for axis in axes)
    if size > 1 and shape == (size, size, 1):
        return bool((np.diff(axes[0]) == 1).all() and (np.diff(axes[1]) == 1).all())
    return shape in block_shapes(topology, size) and prod(shape) == size == len(np.unique(servers))


def collective_cost(topology: RampTopology, shape: Shape) -> tuple[float, float]:
    """Return (seconds, seconds per byte) of an all-reduce among servers that span `shape`.

    A message of M bytes, in total over all members, takes the sum of seconds and M times seconds per byte. In steps
    over subgroups of sub = (groups, min(groups, servers), racks, ceil(servers / x)) members, x being the
    communication groups of the cluster and the transceivers of a server, messages shrink to m_i = m_{i-1} / sub_i.
    Each step with sub > 1 sends at ``min(x, x // (sub - 1)) / x`` of a channel, twice (reduce-scatter, all-gather), and
    adds up once: ``o m / 2 / min(bandwidth o / (2 (sub + 1)), flops)`` with o = ceil(log2 sub).

    A subgroup of more than x + 1 members, which RAMP does not have, would get no bandwidth by this formula; it gets
    one transceiver's.
    """
    groups, racks, servers = shape
    for name, value in (("groups", groups), ("racks", racks), ("servers", servers)):
        require_number(value, f"shape: {name}", positive=True, whole=True)
    x = topology.communication_groups
    latency = topology.propagation + 2 * topology.io_latency
    fixed, slope, part = 0.0, 0.0, 1.0
    for sub in (groups, min(groups, servers), racks, ceil(servers / x)):
        part /= sub
        if sub > 1:
            bandwidth = max(1, x // (sub - 1)) * topology.channel_bandwidth / x
            rounds = ceil(log2(sub))
            additions = min(DEVICE_BANDWIDTH * rounds / (BYTES_PER_VALUE * (sub + 1)), DEVICE_FLOPS)
            fixed += 2 * latency
            slope += part * (2 / bandwidth + rounds / BYTES_PER_VALUE / additions)
    return fixed, slope


def span(topology: RampTopology, devices: IntArray) -> Shape:
    """Return over how many communication groups, racks and servers per rack the devices extend."""
    groups, racks, servers = (len(set(axis.tolist())) for axis in coordinates(topology, devices))
    return groups, racks, servers


def collective_seconds(topology: RampTopology, devices: IntArray, size: float) -> float:
    """Return the time of an all-reduce of `size` bytes in total among the devices; 0 on one device or for no bytes."""
    require_number(size, "size")
    if not size or len(set(devices.tolist())) <= 1:
        return 0.0
    fixed, slope = collective_cost(topology, span(topology, devices))
    return fixed + slope * size


def blocks_by_shape(topology: RampTopology, size: int) -> list[tuple[Shape, IntArray]]:
    """Return the blocks of each shape: boxes, then diagonals.

    Each is int32 (blocks, size), ascending in each block. No two shapes have a block in common: boxes of a size are
    told apart by what they span, and a diagonal of more than one server is no box.
    """
    ENTRIES.check(size * _how_many(topology, size), "degree")
    return [(shape, rows) for shape, rows in _shaped(topology, size) if len(rows)]


def _how_many(topology: RampTopology, size: int) -> int:
    """Return a number of blocks of `size` servers that there are at most, without listing them."""
    shapes = [*block_shapes(topology, size), (size, size, 1)]
    whole = topology.communication_groups, topology.racks, topology.servers
    return sum(prod(max(0, n - extent + 1) for n, extent in zip(whole, shape, strict=True)) for shape in shapes)


def _shaped(topology: RampTopology, size: int) -> Iterator[tuple[Shape, IntArray]]:
    """Yield the boxes of each shape, then the diagonals."""
    for shape in block_shapes(topology, size):
        group, rack, server = np.indices(shape).reshape(3, -1)
        yield shape, _shifted(topology, (group, rack, server), shape)
    if size > 1:
        step = np.arange(size)
        yield (size, size, 1), _shifted(topology, (step, step, 0 * step), (size, size, 1))


def _shifted(topology: RampTopology, at: tuple[Any, Any, Any], shape: Shape) -> IntArray:
    """Return the block with its servers `at` these coordinates at every origin, by group, rack and server."""
    whole = topology.communication_groups, topology.racks, topology.servers
    room = [max(0, total - extent + 1) for total, extent in zip(whole, shape, strict=True)]
    i, j, k = (axis[:, None] for axis in np.indices(room).reshape(3, -1))
    group, rack, server = at
    return server_index(topology, i + group, j + rack, k + server)
