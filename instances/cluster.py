"""The machines: device types, and which devices a cluster has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import IntArray, frozen, require, require_count, require_number, require_text, require_unique
from .errors import InstanceError
from .topology import Level, Topology, TreeTopology


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
