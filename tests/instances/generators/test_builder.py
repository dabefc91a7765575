"""The builder of op graphs."""

from __future__ import annotations

import pytest

from gangplan.instances import DeviceType, InstanceError
from gangplan.instances.generators import GraphBuilder


def test_builder_by_hand() -> None:
    """Times, memory and edges of two ops follow from their definitions."""
    b = GraphBuilder()
    first = b.op("first", flops=100.0, output=10.0, parameters=5.0)
    b.op("second", first, flops=7.0, output=3.0)
    kind = DeviceType("gpu", flops=10.0, memory_bandwidth=2.0)
    graph = b.graph(kind, efficiency=0.5)
    # first: 100 FLOP at 5 a second; backward twice that. second: 10 in + 3 out = 26 bytes at 2 a second, 7 FLOP less;
    # backward reads 3 + 10 and writes 10 gradients = 46 bytes
    assert graph.time.tolist() == [[20.0, 13.0, 23.0, 40.0]]
    # 16 bytes a parameter and 2 an activation; without training 2 bytes for either
    assert graph.memory.tolist() == [100.0, 6.0, 0.0, 0.0]
    assert b.graph(kind, training=False).memory.tolist() == [30.0, 6.0]
    assert graph.edge_bytes.tolist() == [20.0, 20.0, 6.0]
    with pytest.raises(InstanceError, match="'first' is a duplicate"):
        b.op("first", flops=0, output=0)
