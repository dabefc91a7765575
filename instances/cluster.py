"""The machines: how far apart devices are, device types, and which devices a cluster has."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .arrays import FloatArray, IntArray, frozen, require, require_count, require_number, require_text, require_unique
from .errors import LEVELS, InstanceError


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a tree: what joins devices whose smallest common group is of this level.

    Attributes:
        name: e.g. ``server``, ``rack``, ``pod``.
        bandwidth: bytes/s between two such devices.
        latency: seconds per transfer.
    """

    name: str
    bandwidth: float
    latency: float = 0.0

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        require_number(self.bandwidth, "bandwidth", positive=True)
        require_number(self.latency, "latency")


@dataclass(frozen=True, slots=True, eq=False)
class TreeTopology:
    """A tree of any depth over the devices, which are its leaves.

    Attributes:
        levels: from the smallest group (server) up to the one that holds all devices.
        group: int32 (len(levels), n_devices): the group a device is in at each level. Devices
            that share a group share all groups above it.
    """

    levels: tuple[Level, ...]
    group: IntArray = dataclasses.field(metadata={"rank": 2})

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        LEVELS.check(len(self.levels), "levels")
        object.__setattr__(self, "group", frozen(self.group, np.int32, "group", (len(self.levels), None)))
        if not self.levels:
            raise InstanceError("levels", "the tree has no level")
        for lower, upper in zip(range(len(self.levels)), range(1, len(self.levels)), strict=False):
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
        levels = ", ".join(f"{x.name} {x.bandwidth:.4g} bytes/s" for x in self.levels)
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

    communication_groups: int = 4
    racks: int = 4
    servers: int = 2
    channel_bandwidth: float = 4e11
    propagation: float = 50e-9
    io_latency: float = 100e-9

    def __post_init__(self) -> None:
        for name in ("communication_groups", "racks", "servers"):
            require_number(getattr(self, name), name, positive=True, whole=True)
        require_count(self.n_devices, "servers")
        require_number(self.channel_bandwidth, "channel_bandwidth", positive=True)
        require_number(self.propagation, "propagation")
        require_number(self.io_latency, "io_latency")

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
class DeviceType:
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
    flops: float | None = None
    memory: float | None = None
    memory_bandwidth: float | None = None
    host: bool = False

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        for field in ("flops", "memory", "memory_bandwidth"):
            require_number(getattr(self, field), field, positive=True, optional=True)
        if not isinstance(self.host, bool):
            raise InstanceError("host", f"{self.host!r} is not true or false")


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Devices and how they are connected.

    Attributes:
        device_types: the kinds present, length T.
        type_of: int32 (n_devices,), index into `device_types`.
        topology: distances; it spans exactly `n_devices` devices.
    """

    device_types: tuple[DeviceType, ...]
    type_of: IntArray
    topology: Topology

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_types", tuple(self.device_types))
        object.__setattr__(self, "type_of", frozen(self.type_of, np.int32, "type_of", (None,)))
        names = [kind.name for kind in self.device_types]
        require_unique(names, "device_types", ".name")
        if not len(self.type_of):
            raise InstanceError("type_of", "the cluster has no device")
        known = (self.type_of >= 0) & (self.type_of < len(names))
        require(known, self.type_of, "type_of", f"is not one of the {len(names)} device types")
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
        for kind, count in groups:
            require_count(count, f"{kind.name} count")
        kinds = tuple(kind for kind, _ in groups)
        type_of: Any = np.repeat(np.arange(len(groups), dtype=np.int32), [count for _, count in groups])
        level = Level(name, bandwidth, latency)
        return cls(kinds, type_of, TreeTopology((level,), np.zeros((1, len(type_of)), dtype=np.int32)))
