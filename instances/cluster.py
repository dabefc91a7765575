"""The machines: how far apart devices are, device types, and which devices a cluster has."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from .arrays import (
    Checked,
    FloatArray,
    IntArray,
    array,
    check_fields,
    limited,
    listed,
    require_count,
    require_kind,
    require_number,
    require_unique,
)
from .errors import LEVELS, InstanceError, brief
from .quantities import quantity


@dataclass(frozen=True, slots=True)
class Level(Checked):
    """One level of a tree: what joins devices whose smallest common group is of this level.

    Attributes:
        name: e.g. ``server``, ``rack``, ``pod``.
        bandwidth: bytes/s between two such devices.
        latency: seconds per transfer.
    """

    name: str
    bandwidth: float = field(metadata={"positive": True})
    latency: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TreeTopology:
    """A tree of any depth over the devices, which are its leaves.

    Attributes:
        levels: from the smallest group (server) up to the one that holds all devices.
        group: int32 (len(levels), n_devices): the group a device is in at each level. Devices
            that share a group share all groups above it.
    """

    levels: tuple[Level, ...]
    group: IntArray = field(metadata=array("levels", None))

    def __post_init__(self) -> None:
        LEVELS.check(len(listed(self.levels, "levels")), "levels")
        check_fields(self)
        if not self.levels:
            raise InstanceError("levels", "the tree has no level")
        for lower, upper in pairwise(range(len(self.levels))):
            owner: dict[int, int] = {}
            pairs = np.unique(self.group[[lower, upper]], axis=1).T
            for part, whole in pairs.tolist():
                if owner.setdefault(part, whole) != whole:
                    small, large = self.levels[lower].name, self.levels[upper].name
                    words = f"{small} {part} lies in {large}s {owner[part]} and {whole}"
                    raise InstanceError(f"group[{upper}]", words)
        if self.n_devices and np.ptp(self.group[-1]):
            raise InstanceError(f"group[{len(self.levels) - 1}]", "the top level does not join all devices")

    def __repr__(self) -> str:
        levels = ", ".join(f"{x.name} {quantity(x.bandwidth, 'B')}/s" for x in self.levels)
        return f"TreeTopology({self.n_devices} devices: {levels})"

    @property
    def n_devices(self) -> int:
        """How many devices the topology spans."""
        return int(self.group.shape[1])

    @classmethod
    def regular(cls, levels: tuple[Level, ...], fanout: tuple[int, ...]) -> TreeTopology:
        """Build a tree in which every group of level i has `fanout[i]` members of the level below.

        Example: ``regular((server, rack), (8, 4))`` is one rack of four servers of eight GPUs.
        """
        levels, fanout = listed(levels, "levels"), listed(fanout, "fanout")
        if len(fanout) != len(levels):
            raise InstanceError("fanout", f"has {len(fanout)} entries for {len(levels)} levels")
        for i, width in enumerate(fanout):
            require_number(width, f"fanout[{i}]", positive=True, whole=True)
        require_count(prod(fanout), "fanout")
        device = np.arange(prod(fanout))
        return cls(levels, np.stack([device // prod(fanout[: i + 1]) for i in range(len(levels))]).astype(np.int32))

    def level_between(self, a: IntArray, b: IntArray) -> IntArray:
        """Return the index of the lowest level that joins devices `a` and `b`, elementwise."""
        return np.asarray((self.group[:, a] != self.group[:, b]).sum(axis=0), dtype=np.int32)

    def transfer_seconds(self, a: IntArray, b: IntArray, size: FloatArray) -> FloatArray:
        """Return the time to move `size` bytes from devices `a` to `b` on idle links; 0 on one device."""
        level = self.level_between(a, b)
        bandwidth = np.array([x.bandwidth for x in self.levels])[level]
        latency = np.array([x.latency for x in self.levels])[level]
        return np.asarray(np.where(np.equal(a, b), 0.0, latency + np.asarray(size) / bandwidth))

    def slowest_link(self) -> tuple[float, float]:
        """Return (bandwidth, latency) that hold between any two devices: the slowest of all levels."""
        return min(x.bandwidth for x in self.levels), max(x.latency for x in self.levels)


@dataclass(frozen=True, slots=True)
class RampTopology:
    """RAMP: a flat optical mesh, one hop between any two servers (Ottino et al. 2022; PAC-ML, arXiv 2301.13799).

    Attributes:
        communication_groups, racks, servers: the three dimensions; their product is the number of devices.
        channel_bandwidth: bytes/s of one wavelength channel.
        propagation: seconds of flight between two servers.
        io_latency: seconds inside a GPU, paid at each end.
    """

    communication_groups: int = limited(4, positive=True)
    racks: int = limited(4, positive=True)
    servers: int = limited(2, positive=True)
    channel_bandwidth: float = limited(4e11, positive=True)
    propagation: float = 50e-9
    io_latency: float = 100e-9

    def __post_init__(self) -> None:
        check_fields(self)
        require_count(self.n_devices, "servers")

    @property
    def n_devices(self) -> int:
        """How many devices the topology spans."""
        return self.communication_groups * self.racks * self.servers

    def transfer_seconds(self, a: IntArray, b: IntArray, size: FloatArray) -> FloatArray:
        """Return the time to move `size` bytes from devices `a` to `b` over one channel; 0 on one device."""
        latency = self.propagation + 2 * self.io_latency
        return np.where(np.equal(a, b), 0.0, latency + np.asarray(size) / self.channel_bandwidth)

    def slowest_link(self) -> tuple[float, float]:
        """Return (bandwidth, latency) between any two devices."""
        return self.channel_bandwidth, self.propagation + 2 * self.io_latency


Topology = TreeTopology | RampTopology


@dataclass(frozen=True, slots=True)
class DeviceType(Checked):
    """One kind of device.

    Attributes:
        name: unique within a cluster; op graphs give a compute time per name.
        flops: peak FLOP/s, `None` where times are measured and nobody needs it.
        memory: bytes; `None` means unlimited.
        memory_bandwidth: bytes/s, `None` as for `flops`.
        host: the CPU side. Its data is where every transfer ends, so a host pays for none
            (Tarnawski et al., NeurIPS 2020, "Computational model").
    """

    name: str
    flops: float | None = limited(None, positive=True)
    memory: float | None = limited(None, positive=True)
    memory_bandwidth: float | None = limited(None, positive=True)
    host: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Devices and how they are connected.

    Attributes:
        device_types: the kinds present, length T.
        type_of: int32 (n_devices,), index into `device_types`.
        topology: distances; it spans exactly `n_devices` devices.
    """

    device_types: tuple[DeviceType, ...]
    type_of: IntArray = field(metadata=array(None, of="device_types", what="device types"))
    topology: Topology

    def __post_init__(self) -> None:
        check_fields(self)
        require_unique([kind.name for kind in self.device_types], "device_types", ".name")
        if not len(self.type_of):
            raise InstanceError("type_of", "the cluster has no device")
        if self.topology.n_devices != len(self.type_of):
            spans, has = self.topology.n_devices, len(self.type_of)
            raise InstanceError("topology", f"spans {spans} devices, the cluster has {has}")

    def __repr__(self) -> str:
        return f"Cluster({self.words()})"

    @property
    def n_devices(self) -> int:
        """How many devices there are."""
        return len(self.type_of)

    def words(self) -> str:
        """Return how many devices there are of which type, e.g. ``4 x A100``."""
        counts = zip(self.counts().tolist(), self.device_types, strict=True)
        return ", ".join(f"{count} x {kind.name}" for count, kind in counts)

    def counts(self) -> IntArray:
        """Return the number of devices of each type, int32 (T,)."""
        return np.bincount(self.type_of, minlength=len(self.device_types)).astype(np.int32)

    @classmethod
    def flat(
        cls, *groups: tuple[DeviceType, int], bandwidth: float, latency: float = 0.0, name: str = "server"
    ) -> Cluster:
        """Build a cluster of `(type, count)` groups behind one switch.

        Args:
            groups: device types and how many of each, in device order.
            bandwidth: bytes/s of a device's link.
            latency: seconds per transfer.
            name: what the single level is called.
        """
        for i, group in enumerate(groups):
            if not isinstance(group, tuple | list) or len(group) != 2:
                raise InstanceError(f"groups[{i}]", f"{brief(group)} is no pair; write (DeviceType(name), 8)")
            require_kind(group[0], f"groups[{i}][0]", (DeviceType,))
            require_count(group[1], f"{group[0].name} count")
        kinds = tuple(kind for kind, _ in groups)
        type_of: Any = np.repeat(np.arange(len(groups), dtype=np.int32), [count for _, count in groups])
        level = Level(name, bandwidth, latency)
        return cls(kinds, type_of, TreeTopology((level,), np.zeros((1, len(type_of)), dtype=np.int32)))
