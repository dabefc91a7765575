"""The GPUs of a cluster that are alike, and how they are connected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, NamedTuple

from ..arrays import check_fields, limited, require_number
from ..devices import LINK_BANDWIDTH, PEAK_8, PEAK_32, catalogue
from ..errors import InstanceError, unknown

NETWORK = {"GB300": 100e9, "A100": 25e9, "V100": 12.5e9, "P100": 12.5e9}
"""Bytes/s of a GPU's share of the network: an adapter of 800 Gb/s each (DGX GB300), of 200 (DGX A100); else of 400."""
DOMAIN = {"GB200": 72, "GB300": 72}
"""GPUs that NVLink joins, where these are more than those of a node."""
LATENCIES = 5e-6, 20e-6
"""Seconds until a message arrives by NVLink, and by the network, software included; round figures."""


class Transfer(NamedTuple):
    """What moving bytes takes: `fixed` seconds, and `each` for every byte."""

    fixed: float
    each: float

    def seconds(self, size: Any) -> Any:
        """Return the seconds for so many bytes, none for none; elementwise of an array."""
        return self.fixed * (size > 0) + self.each * size


@dataclass(frozen=True, slots=True)
class Link:
    """A level of links.

    Attributes:
        span: GPUs that it joins.
        bandwidth: bytes/s of each of them, one way.
        latency: seconds until a message arrives.
    """

    span: int = limited(1, positive=True)
    bandwidth: float = limited(1.0, positive=True)
    latency: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class GpuPool:
    """GPUs that are alike; ranks are numbered so that neighbours are close.

    Attributes:
        gpu: their name.
        count: how many.
        memory: bytes of each.
        memory_bandwidth: bytes/s of that memory.
        flops: peak FLOP/s in 16 bits.
        flops_8, flops_32: in 8 and 32 bits, 0 if they cannot.
        levels: links, innermost first; the last joins all.
    """

    gpu: str
    count: int = limited(1, positive=True)
    memory: float = limited(1.0, positive=True)
    memory_bandwidth: float = limited(1.0, positive=True)
    flops: float = limited(1.0, positive=True)
    flops_8: float = 0.0
    flops_32: float = 0.0
    levels: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        spans = [link.span for link in self.levels]
        if not spans or spans[-1] < self.count or sorted(set(spans)) != spans:
            raise InstanceError("levels", f"join {spans} GPUs: each must join more than the one before, the last all")

    def gather(self, members: int, stride: int) -> Transfer:
        """Return what an all-gather, or a reduce-scatter, of so many bytes left, or taken, on each member takes.

        Rings, one in another by levels: what is joined by the inner one is gathered by each of its members from
        outside in equal parts, each over a link of its own.

        Args:
            members: how many GPUs.
            stride: from one to the next.
        """
        fixed = each = 0.0
        for link, below, joined in self._joined(members, stride):
            ways = joined / below
            fixed, each = fixed + ceil(log2(ways)) * link.latency, each + (ways - 1) / joined / link.bandwidth
        return Transfer(fixed, each)

    def exchange(self, members: int, stride: int) -> Transfer:
        """Return what an all-to-all takes in which each member has so many bytes for all, itself included."""
        fixed = each = 0.0
        for link, below, joined in self._joined(members, stride):
            fixed, each = fixed + link.latency, each + (joined - below) / members / link.bandwidth
        return Transfer(fixed, each)

    def send(self, stride: int) -> Transfer:
        """Return what it takes to send bytes to the GPU `stride` further on, from the one placed worst."""
        link = next((x for x in self.levels if x.span >= 2 * stride), self.levels[-1])
        return Transfer(link.latency, 1.0 / link.bandwidth)

    def _joined(self, members: int, stride: int) -> Iterator[tuple[Link, int, int]]:
        """Yield each level that a group needs, how many members those below it join, and how many it joins."""
        below = 1
        for link in self.levels:
            joined = members if link is self.levels[-1] else min(members, max(1, link.span // stride))
            if joined > below:
                yield link, below, joined
                below = joined


def gpu_pool(
    gpu: str, nodes: int, per_node: int = 8, *, memory: float | None = None, network: float | None = None
) -> GpuPool:
    """Return nodes of one type of GPU with the figures of its data sheet.

    Args:
        gpu: A100, H100, H200, B200, GB200, GB300, V100 or P100.
        nodes: how many.
        per_node: GPUs of each.
        memory: bytes of a GPU, instead of the data sheet's.
        network: bytes/s of a GPU's share of the network, instead of that of the vendor's server.

    Raises:
        InstanceError: naming the argument.
    """
    gpu = gpu.upper() if isinstance(gpu, str) and gpu.upper() in catalogue else gpu
    if not isinstance(gpu, str) or gpu not in catalogue:
        raise InstanceError("gpu", unknown(gpu, catalogue))
    for name, value in (("nodes", nodes), ("per_node", per_node)):
        require_number(value, name, positive=True, whole=True)
    for name, amount in (("memory", memory), ("network", network)):
        require_number(amount, name, positive=True, optional=True)
    sheet, count = catalogue[gpu], nodes * per_node
    assert sheet.memory and sheet.memory_bandwidth and sheet.flops
    near = max(per_node, DOMAIN.get(gpu, 0))
    inner = [Link(min(near, count), LINK_BANDWIDTH[gpu], LATENCIES[0])]
    outer = [Link(count, network or NETWORK.get(gpu, 50e9), LATENCIES[1])] if count > near else []
    return GpuPool(
        gpu,
        count,
        memory or sheet.memory,
        sheet.memory_bandwidth,
        sheet.flops,
        PEAK_8.get(gpu, 0.0),
        PEAK_32[gpu],
        (*inner, *outer),
    )
