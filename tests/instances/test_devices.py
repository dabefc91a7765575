"""The catalogue of devices, and the roofline."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import DeviceType, InstanceError
from gangplan.instances.devices import LINK_BANDWIDTH, catalogue, roofline, server


def test_roofline_takes_the_slower_bound() -> None:
    """Arithmetic binds one op, memory the other."""
    kind = DeviceType("gpu", flops=100.0, memory_bandwidth=10.0)
    assert roofline(kind, np.array([100.0, 1.0]), np.array([1.0, 50.0]), 0.5).tolist() == [2.0, 5.0]
    with pytest.raises(InstanceError, match="'bare' has no FLOP/s"):
        roofline(DeviceType("bare"), np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("name", catalogue)
def test_catalogue(name: str) -> None:
    """Every device type can be generated for and has a link; newer ones are no worse (they are listed by age)."""
    kind = catalogue[name]
    assert kind.name == name
    cluster = server(2, name)
    assert cluster.topology.slowest_link() == (LINK_BANDWIDTH[name], 0.0)
    older = list(catalogue.values())[list(catalogue).index(name) - 1] if name != "P100" else kind
    for field in ("flops", "memory", "memory_bandwidth"):
        assert getattr(kind, field) >= getattr(older, field)
    assert LINK_BANDWIDTH[name] >= LINK_BANDWIDTH[older.name]
