"""RAMP as PAC-ML uses it: the shapes of server blocks, and what a collective over such a block costs.

Sources: Ottino et al. 2022 (RAMP), Parsonson et al., arXiv 2301.13799 (PAC-ML) and its published code.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isqrt, log2

import numpy as np

from .arrays import IntArray, require_number
from .topology import RampTopology

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
    for b in range(1, min(size, topology.servers) + 1):
        a, rest = divmod(size, b)
        if rest:
            continue
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
    g, r, s = topology.communication_groups, topology.racks, topology.servers
    for shape in block_shapes(topology, size):
        yield from _boxes(topology, shape)
    step = np.arange(size, dtype=np.int32)
    for i in range(g - size + 1 if size > 1 else 0):
        for j in range(r - size + 1):
            for k in range(s):
                yield server_index(topology, i + step, j + step, np.full(size, k, dtype=np.int32))


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


def _boxes(topology: RampTopology, shape: Shape) -> Iterator[IntArray]:
    c, r, s = shape
    box = np.indices(shape, dtype=np.int32).reshape(3, -1)
    for i in range(topology.communication_groups - c + 1):
        for j in range(topology.racks - r + 1):
            for k in range(topology.servers - s + 1):
                yield server_index(topology, box[0] + i, box[1] + j, box[2] + k)
