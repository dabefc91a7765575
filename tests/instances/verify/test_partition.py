"""Each rule of the verifier on a case small enough to argue in a comment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionPlan, PartitionProblem, verify

GPU = DeviceType("gpu", memory=100.0)
CPU = DeviceType("cpu", host=True)


def problem(
    time: list[float],
    edges: list[tuple[int, int, float]],
    *,
    gpus: int = 2,
    cpus: int = 0,
    variant: str = "contiguous",
    latency: float = 0.0,
    **fields: Any,
) -> PartitionProblem:
    """Build ops a, b, c... on GPUs whose links move 10 bytes/s; a CPU takes ten times as long."""
    n = len(time)
    values: dict[str, Any] = {
        "memory": np.zeros(n),
        "colocation": np.full(n, -1),
        "twin": np.full(n, -1),
        "backward": np.zeros(n, dtype=bool),
        "time": np.array([time, [10 * t for t in time]]),
    }
    graph = OpGraph(
        names=tuple("abcdefgh"[:n]),
        device_types=("gpu", "cpu"),
        parameter_bytes=np.zeros(n),
        activation_bytes=np.zeros(n),
        source=np.array([u for u, _, _ in edges], dtype=np.int32),
        target=np.array([v for _, v, _ in edges], dtype=np.int32),
        edge_bytes=np.array([size for _, _, size in edges]),
        **(values | fields),
    )
    return PartitionProblem(graph, Cluster.flat((GPU, gpus), (CPU, cpus), bandwidth=10.0, latency=latency), variant)


def plan(device: list[int], stage: list[int] | None = None) -> PartitionPlan:
    """Build a plan; a device's stage is its number unless given."""
    return PartitionPlan(tuple("abcdefgh"[: len(device)]), np.array(device), np.array(stage or device))


CHAIN = [(0, 1, 10.0), (1, 2, 20.0)]


def test_load_of_a_chain() -> None:
    """Load is compute and the output that crosses, on both sides of the cut."""
    # b's 20 bytes take 2 s: device 0 has 1 + 2 + 2 sent, device 1 has 4 + 2 received
    verdict = verify(problem([1, 2, 4], CHAIN), plan([0, 0, 1]))
    assert verdict.ok
    assert verdict.load.tolist() == [5.0, 6.0]
    assert verdict.transfer.tolist() == [2.0, 2.0]
    assert verdict.objective == 6.0


def test_one_device_moves_nothing() -> None:
    """Everything on one device costs its compute alone, and the idle device nothing."""
    verdict = verify(problem([1, 2, 4], CHAIN), plan([1, 1, 1], [0, 0, 0]))
    assert verdict.load.tolist() == [0.0, 7.0]


def test_output_is_sent_and_received_once() -> None:
    """An output crosses a boundary once, however many consumers are behind it."""
    # a's 10 bytes (1 s) go to b and c: sent once from device 0; received once by device 1 if both are there
    fork = [(0, 1, 10.0), (0, 2, 10.0)]
    assert verify(problem([0, 0, 0], fork), plan([0, 1, 1])).load.tolist() == [1.0, 1.0]
    # ... and once by each of devices 1 and 2 if they are apart, still sent once
    assert verify(problem([0, 0, 0], fork, gpus=3), plan([0, 1, 2])).load.tolist() == [1.0, 1.0, 1.0]


def test_output_is_the_largest_edge() -> None:
    """An op's output is as large as its largest edge, whichever edge is cut."""
    # only the 10-byte edge a-c is cut, but a's output has 30 bytes: 3 s
    verdict = verify(problem([0, 0, 0], [(0, 1, 30.0), (0, 2, 10.0)]), plan([0, 0, 1]))
    assert verdict.load.tolist() == [3.0, 3.0]


def test_host_pays_for_no_transfer() -> None:
    """A host computes but does not pay for what it sends or gets; the accelerator beside it does."""
    # a on the GPU: 1 + 1 s sent; b and c on the CPU at a tenth of the speed: 20 + 40
    verdict = verify(problem([1, 2, 4], CHAIN, gpus=1, cpus=1), plan([0, 1, 1]))
    assert verdict.load.tolist() == [2.0, 60.0]
    assert verdict.transfer.tolist() == [1.0, 0.0]


def test_latency_is_paid_per_output() -> None:
    """Latency comes on top of each output that crosses; an output of no bytes costs nothing."""
    verdict = verify(problem([0, 0, 0], [(0, 1, 10.0), (1, 2, 0.0)], gpus=3, latency=0.5), plan([0, 1, 2]))
    assert verdict.load.tolist() == [1.5, 1.5, 0.0]


@pytest.mark.parametrize(("last", "ok"), [(40.0, True), (40.1, False)])
def test_memory(last: float, ok: bool) -> None:
    """A device holds up to its memory, to the byte."""
    # device 0 has 100 bytes and gets 60 + 40, or a little more
    verdict = verify(
        problem([1, 1, 1], CHAIN, memory=np.array([60.0, last, 500.0]), cpus=1), plan([0, 0, 2], [0, 0, 1])
    )
    assert verdict.ok is ok
    assert ok or verdict.violations == ("memory: the ops on device 0 need 100.1 B, it has 100 B",)
    assert verdict.memory.tolist() == [60.0 + last, 0.0, 500.0]  # the host's memory has no limit


def test_colocation() -> None:
    """Ops of one class share a device."""
    verdict = verify(problem([1, 1, 1], CHAIN, colocation=np.array([4, -1, 4])), plan([0, 1, 1]))
    assert verdict.violations == ("colocation: op c is on device 1, op a of its class on 0",)
    assert verdict.objective is None


def test_unsupported_op() -> None:
    """An op of infinite time on a device type cannot be there."""
    time = np.array([[1.0, np.inf, 1.0], [1.0, 1.0, 1.0]])
    one = problem([1, 1, 1], CHAIN, gpus=1, cpus=1)
    one = replace(one, graph=replace(one.graph, time=time))
    assert verify(one, plan([0, 0, 0])).violations == ("op b cannot run on device 0 (gpu)",)
    assert verify(one, plan([0, 1, 1])).ok


def test_stages_and_devices_go_together() -> None:
    """One stage is one device, both ways."""
    one = problem([1, 1, 1], CHAIN, variant="free")
    assert verify(one, plan([0, 0, 1], [0, 1, 2])).violations == ("device 0 has stages 0, 1",)
    assert verify(one, plan([0, 0, 1], [0, 0, 0])).violations == ("stage 0 has devices 0, 1",)


def test_contiguous_follows_the_edges() -> None:
    """No edge runs from a later stage to an earlier one; device numbers do not matter."""
    one = problem([1, 1, 1], CHAIN)
    assert verify(one, plan([1, 1, 0], [0, 0, 1])).ok
    words = verify(one, plan([1, 1, 0])).violations
    assert words == ("contiguous: op b (stage 1) comes before op c (stage 0) in the graph",)


@pytest.mark.parametrize(("variant", "ok"), [("contiguous", False), ("convex", False), ("free", True)])
def test_a_path_may_not_come_back(variant: str, ok: bool) -> None:
    """A device whose path leaves it and comes back is neither contiguous nor convex, but free."""
    # a -> b -> c with a and c together
    assert verify(problem([1, 1, 1], CHAIN, variant=variant), plan([0, 1, 0])).ok is ok


@pytest.mark.parametrize(("variant", "ok"), [("contiguous", False), ("convex", True), ("free", True)])
def test_convex_parts_may_form_a_cycle(variant: str, ok: bool) -> None:
    """Two devices that each wait for the other's other half are convex, not contiguous."""
    # a -> b and c -> d; a and d together, b and c together: edges 0 -> 1 and 1 -> 0, but no path comes back
    one = problem([1, 1, 1, 1], [(0, 1, 1.0), (2, 3, 1.0)], variant=variant)
    assert verify(one, plan([0, 1, 1, 0])).ok is ok


def test_convex_sees_long_ways_round() -> None:
    """A path that comes back through two other devices is found and named at its end."""
    path = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]
    verdict = verify(problem([1, 1, 1, 1], path, gpus=3, variant="convex"), plan([0, 1, 2, 0]))
    assert verdict.violations == ("convex: a path leaves device 0 and comes back to it at op d",)


@pytest.mark.parametrize("variant", ["contiguous", "convex"])
def test_backward_ops_follow_their_forward_ops(variant: str) -> None:
    """Backward ops sit with their forward ops and order nothing, though their edges run back."""
    # forward a -> b, backward c (of b) -> d (of a), joined b -> c: the usual training pipeline
    edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]
    back = {"colocation": np.array([0, 1, 1, 0]), "backward": np.array([False, False, True, True])}
    one = problem([1, 1, 1, 1], edges, variant=variant, twin=np.array([3, 2, 1, 0]), **back)
    verdict = verify(one, plan([0, 1, 1, 0]))
    # each device: 2 s of compute; a's output sent or received .1 s, and the gradient that c sends d another .1 s
    assert verdict.ok
    assert verdict.load.tolist() == pytest.approx([2.2, 2.2])


def test_orphan_backward_op_is_a_mirror_image() -> None:
    """A backward op with no forward op in its class is ordered by its reversed edges."""
    # forward a -> b; backward c (of b) -> d, which is nobody's: d may not be after b's stage
    edges = [(0, 1, 1.0), (2, 3, 1.0)]
    back = {"colocation": np.array([0, 1, 1, -1]), "backward": np.array([False, False, True, True])}
    one = problem([1, 1, 1, 1], edges, gpus=3, **back)
    assert verify(one, plan([0, 1, 1, 0])).ok
    assert verify(one, plan([0, 1, 1, 1])).ok
    words = verify(one, plan([0, 1, 1, 2])).violations
    assert words == ("contiguous: op d (stage 2) comes before op c (stage 1) in the graph",)


def test_plans_of_other_graphs() -> None:
    """A plan for other ops, or for devices the cluster has not, is refused before anything is computed."""
    one = problem([1, 1, 1], CHAIN)
    assert verify(one, plan([0, 0])).violations == ("the plan places 2 ops, the graph has 3",)
    other = PartitionPlan(("a", "x", "c"), np.zeros(3, dtype=int), np.zeros(3, dtype=int))
    assert verify(one, other).violations == ("op 1 of the plan is x, of the graph b",)
    assert verify(one, plan([0, 0, 2])).violations == ("op c is on device 2, the cluster has 2",)


def test_all_violations_are_listed() -> None:
    """A plan that breaks three rules is told of all three."""
    one = problem([1, 1, 1], CHAIN, memory=np.array([0.0, 0.0, 101.0]), colocation=np.array([0, 0, -1]))
    words = [text.split(":")[0] for text in verify(one, plan([1, 0, 0])).violations]
    assert words == ["memory", "colocation", "contiguous"]
