"""GPUs by name, with their data-sheet figures, a server full of one kind, and how long an op takes on one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .arrays import FloatArray, require_count, require_number, require_share
from .cluster import Cluster, DeviceType
from .errors import InstanceError, did_you_mean

_SHEETS = {
    # Tesla P100 (SXM2) data sheet, 2016: half precision, no tensor cores; 16 GB HBM2
    "P100": (21.2e12, 16e9, 732e9, 10.6e12, 80e9),
    # V100 (SXM2) data sheet, 2020: tensor performance; the 32 GB model
    "V100": (125e12, 32e9, 900e9, 15.7e12, 150e9),
    # A100 80GB (SXM) data sheet, 2021: BF16 tensor core without sparsity
    "A100": (312e12, 80e9, 2039e9, 19.5e12, 300e9),
    # H100 (SXM) data sheet, 2023: 1,979 TFLOPS BF16 "with sparsity", half of it dense
    "H100": (989.5e12, 80e9, 3.35e12, 67e12, 450e9),
    # H200 (SXM) data sheet, 2024: 1,979 TFLOPS BF16 "with sparsity", half of it dense
    "H200": (989.5e12, 141e9, 4.8e12, 67e12, 450e9),
    # DGX B200 and HGX B200 data sheets, 2024, an eighth of: 36 PFLOPS FP16 sparse (half dense), 1,440 GB, 64 TB/s
    "B200": (2.25e15, 180e9, 8e12, 75e12, 900e9),
    # GB200 NVL72 and GB300 NVL72 data sheets, 2024 and 2025, a 72nd of: 360 PFLOPS FP16 sparse (half dense), 13.4 and
    # 20 TB, 576 TB/s
    "GB200": (2.5e15, 186e9, 8e12, 80e12, 900e9),
    "GB300": (2.5e15, 278e9, 8e12, 80e12, 900e9),
}
"""FLOP/s in 16 bits, bytes, bytes/s of memory, FLOP/s in 32 bits, bytes/s of a link; decimal as data sheets count."""
catalogue = {
    name: DeviceType(name, flops=flops, memory=size, memory_bandwidth=speed)
    for name, (flops, size, speed, _, _) in _SHEETS.items()
}
"""Device types by name: peak dense FLOP/s in 16-bit precision, bytes and bytes/s."""
PEAK_32 = {name: row[3] for name, row in _SHEETS.items()}
"""Peak FLOP/s in 32-bit precision by the same data sheets, outside tensor cores: what PyTorch uses for products of
32-bit matrices unless TF32 is switched on. In 64-bit precision it is half of that on all of them."""
LINK_BANDWIDTH = {name: row[4] for name, row in _SHEETS.items()}
"""NVLink bytes/s of one GPU in one direction: half of what the same data sheets give for both directions."""

PEAK_8 = {"H100": 1979e12, "H200": 1979e12, "B200": 4.5e15, "GB200": 5e15, "GB300": 5e15}
"""Peak dense FLOP/s in FP8 by the same data sheets; others have none."""

EFFICIENCY = 0.5
"""Share of the data sheet's FLOP/s that large matrix products reach; a round figure, not a measurement."""
LAUNCH = 5e-6
"""Seconds between two kernels that PyTorch starts one by one; a round figure, not a measurement."""


def server(
    devices: int = 4, device_type: str = "A100", memory: float | None = None, bandwidth: float | None = None
) -> Cluster:
    """Build `devices` GPUs of one type behind one switch.

    Args:
        devices: how many.
        device_type: a name of the catalogue, or any other if `bandwidth` is given; its memory is then
            unlimited unless `memory` is given.
        memory: bytes of one device, instead of the catalogue's.
        bandwidth: bytes/s of a device's link, instead of the catalogue's.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(devices, "devices", positive=True, whole=True)
    require_count(devices, "devices")
    require_number(memory, "memory", positive=True, optional=True)
    require_number(bandwidth, "bandwidth", positive=True, optional=True)
    kind = catalogue.get(device_type) if isinstance(device_type, str) else None
    if kind is None and bandwidth is None:
        words = f"{device_type!r} is not one of {', '.join(catalogue)}; give its bandwidth"
        raise InstanceError("device_type", words + did_you_mean(device_type, catalogue))
    if kind is None:
        kind = DeviceType(device_type)
    link = LINK_BANDWIDTH[kind.name] if bandwidth is None else bandwidth
    return Cluster.flat((kind if memory is None else replace(kind, memory=memory), devices), bandwidth=link)


def roofline(
    device: DeviceType,
    flops: FloatArray,
    moved: FloatArray,
    efficiency: float = EFFICIENCY,
    peak: FloatArray | None = None,
) -> FloatArray:
    """Return max(flops / (peak * efficiency), moved / memory bandwidth), seconds, of the shape of `flops`.

    An op is bound by arithmetic or by memory, whichever is slower (Williams et al., "Roofline", CACM 2009).

    Args:
        device: gives the peak FLOP/s and the memory bandwidth in bytes/s.
        flops: floating-point operations, a multiply-add counting as two.
        moved: bytes read and written.
        efficiency: share of the peak that is reached, in (0, 1].
        peak: FLOP/s of each op's precision, instead of the device's.

    Raises:
        InstanceError: if the device has no peak or no bandwidth, or `efficiency` is out of range.
    """
    require_share(efficiency, "efficiency", positive=True)
    if device.flops is None or device.memory_bandwidth is None:
        raise InstanceError("device_type", f"{device.name!r} has no FLOP/s and memory bandwidth to compute times from")
    return np.maximum(flops / ((device.flops if peak is None else peak) * efficiency), moved / device.memory_bandwidth)
