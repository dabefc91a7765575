"""The verifier of latency plans, on cases small enough to time by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, InstanceError, LatencyPlan, LatencyProblem, OpGraph, verify

GPU, CPU = DeviceType("gpu", memory=10.0), DeviceType("cpu", host=True)


def problem(
    edges: list[tuple[int, int]],
    n: int = 4,
    size: float = 1.0,
    gpus: int = 2,
    cpus: int = 1,
    colocation: list[int] | None = None,
    backward: bool = False,
) -> LatencyProblem:
    """Build ops a, b, ... of 1 s on a gpu and 10 s on a cpu, that occupy 4 bytes; an output takes `size` s to move."""
    graph = OpGraph(
        names=tuple("abcdefgh"[:n]),
        device_types=("gpu", "cpu"),
        time=np.array([[1.0] * n, [10.0] * n]),
        memory=np.full(n, 4.0),
        parameter_bytes=np.zeros(n),
        activation_bytes=np.zeros(n),
        source=np.array([u for u, _ in edges], dtype=np.int32),
        target=np.array([v for _, v in edges], dtype=np.int32),
        edge_bytes=np.full(len(edges), size),
        colocation=np.array(colocation or [-1] * n),
        backward=np.array([False] * (n - 1) + [backward]),
    )
    return LatencyProblem(graph, Cluster.flat((GPU, gpus), (CPU, cpus), bandwidth=1.0))


CHAIN = [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("edges", "device", "seconds"),
    [
        # a and b in one call: 2 s of compute, 1 s to send b out; then c and d: 1 s in, 2 s
        (CHAIN, [0, 0, 1, 1], 6.0),
        # all on the host, one after the other, for nothing is sent
        (CHAIN, [2, 2, 2, 2], 40.0),
        # the host is not limited to one op at a time: b, c and d wait for a alone
        ([(0, 1), (0, 2), (0, 3)], [2, 2, 2, 2], 20.0),
        # an output goes out once and comes in once, whoever asks: 2 + 1 for a, d and a's output, 1 + 2 for b and c
        ([(0, 1), (0, 2)], [0, 1, 1, 0], 6.0),
        # a call starts when all its inputs are there: d (host, 10 s) keeps b waiting, though only c needs it
        ([(0, 1), (3, 2)], [0, 1, 1, 2], 14.0),
        # results are there when the whole call is over: c waits for b too
        ([(0, 2)], [0, 0, 1, 1], 3.0 + 3.0),
    ],
)
def test_latency(edges: list[tuple[int, int]], device: list[int], seconds: float) -> None:
    """The time of one sample is that of the last call or host op."""
    verdict = verify(problem(edges), LatencyPlan(("a", "b", "c", "d"), np.array(device)))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ([0, 1, 0, 2], "contiguous: there is a cycle: the call on device"),
        ([0, 2, 0, 2], "contiguous: there is a cycle: "),
        ([0, 0, 0, 1], "memory: the ops on device 0 need 12 B, it has 10 B"),
        ([0, 0, 7, 1], "op c is on device 7, the cluster has 3"),
    ],
)
def test_violations(device: list[int], words: str) -> None:
    """A broken constraint is named."""
    verdict = verify(problem(CHAIN), LatencyPlan(("a", "b", "c", "d"), np.array(device)))
    assert verdict.objective is None
    assert verdict.violations[0].startswith(words)


def test_colocation() -> None:
    """Ops of a class share a device, a host too."""
    instance = problem(CHAIN, colocation=[0, -1, -1, 0])
    words = verify(instance, LatencyPlan(("a", "b", "c", "d"), np.array([2, 0, 0, 1]))).violations
    assert words == ("colocation: op d is on device 1, op a of its class on 2",)
    assert verify(instance, LatencyPlan(("a", "b", "c", "d"), np.array([2, 0, 0, 2]))).ok


def test_idle_cycle_is_still_a_cycle() -> None:
    """Calls that take no time cannot wait for one another either."""
    instance = problem(CHAIN, size=0.0)
    assert not verify(instance, LatencyPlan(("a", "b", "c", "d"), np.array([0, 1, 0, 2]))).ok


def test_forward_only() -> None:
    """Latency is of a forward pass."""
    with pytest.raises(InstanceError, match=r"graph.backward: 1 ops belong to a backward pass"):
        problem(CHAIN, backward=True)
