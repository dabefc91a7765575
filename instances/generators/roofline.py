"""How long an op takes, from what it computes and what it moves."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, require_number
from ..cluster import DeviceType
from ..errors import InstanceError

EFFICIENCY = 0.5
"""Share of the data sheet's FLOP/s that large matrix products reach; a round figure, not a measurement."""


def roofline(device: DeviceType, flops: FloatArray, moved: FloatArray, efficiency: float = EFFICIENCY) -> FloatArray:
    """Return max(flops / (peak * efficiency), moved / memory bandwidth), seconds, of the shape of `flops`.

    An op is bound by arithmetic or by memory, whichever is slower (Williams et al., "Roofline", CACM 2009).

    Args:
        device: gives the peak FLOP/s and the memory bandwidth in bytes/s.
        flops: floating-point operations, a multiply-add counting as two.
        moved: bytes read and written.
        efficiency: share of the peak that is reached, in (0, 1].

    Raises:
        InstanceError: if the device has no peak or no bandwidth, or `efficiency` is out of range.
    """
    require_number(efficiency, "efficiency", positive=True)
    if efficiency > 1:
        raise InstanceError("efficiency", f"{efficiency!r} is more than 1")
    if device.flops is None or device.memory_bandwidth is None:
        raise InstanceError("device_type", f"{device.name!r} has no FLOP/s and memory bandwidth to compute times from")
    return np.maximum(flops / (device.flops * efficiency), moved / device.memory_bandwidth)
