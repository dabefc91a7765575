"""Clusters of many devices and of many types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import Cluster, DeviceType, PartitionProblem, generate, solve


def test_more_devices_than_ops() -> None:
    """Devices beyond one an op stay idle and cost no proof."""
    few, many = (solve(generate("gpt", layers=2, devices=d), time_limit=30, workers=1) for d in (60, 50_000))
    assert few.status == many.status == "OPTIMAL"
    assert many.objective == pytest.approx(few.objective, rel=1e-9)


def test_more_types_are_not_worse() -> None:
    """Fourteen types of one device, each slower than the last, do at least as well as the six fastest of them."""
    base = generate("gpt", layers=2)
    slow = np.linspace(1.0, 3.0, 14)
    names = tuple(f"gpu{i}" for i in range(14))
    graph = replace(base.graph, device_types=names, time=base.graph.time[:1] * slow[:, None])
    values = []
    for count in (6, 14):
        cluster = Cluster.flat(*((DeviceType(name), 1) for name in names[:count]), bandwidth=3e11)
        result = solve(PartitionProblem(graph, cluster), time_limit=20, workers=1)
        assert result.objective is not None
        values.append(result.objective)
    assert values[1] <= values[0] * (1 + 1e-9)
