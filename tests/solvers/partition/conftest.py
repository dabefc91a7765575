"""Problems of a graph small enough to argue about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gangplan.hybrid import portfolio
from gangplan.instances import Cluster, DeviceType, GraphProblem, LatencyProblem, OpGraph, PartitionProblem

Make = Callable[..., Any]


def _make(
    time: list[float] | list[list[float]],
    edges: list[tuple[int, int, float]],
    *,
    gpus: int = 2,
    cpus: int = 0,
    memory: float | None = None,
    host_memory: float | None = None,
    variant: str | None = None,
    latency: float = 0.0,
    size: list[float] | None = None,
    colocation: list[int] | None = None,
    backward: list[int] | None = None,
) -> GraphProblem:
    """Build ops a, b, c...; an output of x bytes takes x seconds to move; a CPU takes ten times a GPU's time.

    With a variant it is a problem of throughput, without one of latency.
    """
    one = np.array(time, dtype=float)
    both = one if one.ndim == 2 else np.stack([one, 10 * one])
    n = both.shape[1]
    turned = np.zeros(n, dtype=bool)
    turned[backward or []] = True
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
        colocation=np.array(colocation or [-1] * n),
        backward=turned,
    )
    groups: Any = (DeviceType("gpu", memory=memory), gpus), (DeviceType("cpu", memory=host_memory, host=True), cpus)
    cluster = Cluster.flat(*groups, bandwidth=1.0, latency=latency)
    return LatencyProblem(graph, cluster) if variant is None else PartitionProblem(graph, cluster, variant)


@pytest.fixture(scope="session")
def make() -> Make:
    """Return the builder of small problems."""
    return _make


@pytest.fixture(scope="module")
def in_this_process() -> Iterator[None]:
    """Have methods run in this process: a fork for each of hundreds of tiny solves takes as long as they do.

    That each method runs in a process of its own too is tested in `tests/hybrid`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portfolio, "can_serve", lambda: False)
        yield
