"""Latency problems small enough to argue about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, LatencyProblem, OpGraph

Make = Callable[..., LatencyProblem]


def _make(
    time: list[float] | list[list[float]],
    edges: list[tuple[int, int, float]],
    *,
    gpus: int = 2,
    cpus: int = 0,
    memory: float | None = None,
    host_memory: float | None = None,
    latency: float = 0.0,
    size: list[float] | None = None,
    colocation: list[int] | None = None,
) -> LatencyProblem:
    """Build ops a, b, c...; an output of x bytes takes x seconds to move; a CPU takes ten times a GPU's time."""
    one = np.array(time, dtype=float)
    both = one if one.ndim == 2 else np.stack([one, 10 * one])
    n = both.shape[1]
    graph = OpGraph(
        names=tuple("abcdefghijkl"[:n]),
        device_types=("gpu", "cpu"),
        time=both,
        memory=np.array(size or [0.0] * n),
        parameter_bytes=np.zeros(n),
        activation_bytes=np.zeros(n),
        source=np.array([u for u, _, _ in edges], dtype=np.int32),
        target=np.array([v for _, v, _ in edges], dtype=np.int32),
        edge_bytes=np.array([x for _, _, x in edges], dtype=float),
        colocation=np.array(colocation or [-1] * n, dtype=np.int32),
    )
    groups: Any = (DeviceType("gpu", memory=memory), gpus), (DeviceType("cpu", memory=host_memory, host=True), cpus)
    return LatencyProblem(graph, Cluster.flat(*groups, bandwidth=1.0, latency=latency))


@pytest.fixture(scope="session")
def make() -> Make:
    """Return the builder of small problems."""
    return _make
