"""The verifier of step plans, on cases small enough to time by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    Level,
    OpGraph,
    PartitionPlan,
    StepPlan,
    StepProblem,
    TreeTopology,
    verify,
)
from gangplan.instances.partition import Links

NAMES = ("a", "b", "c", "d")
SERVER, RACK = Level("server", 10.0, 0.0), Level("rack", 1.0, 0.5)
FOUR = Cluster(
    (DeviceType("gpu", memory=10.0),), np.zeros(4, dtype=np.int32), TreeTopology.regular((SERVER, RACK), (2, 2))
)
"""Two servers of two: 10 bytes take 1 s within a server and 10.5 s between."""


def problem(edges: list[tuple[int, int, float]], contention: bool = False) -> StepProblem:
    """Build four ops of 1 s and 4 bytes."""
    graph = OpGraph(
        names=NAMES,
        device_types=("gpu",),
        time=np.ones((1, 4)),
        memory=np.full(4, 4.0),
        parameter_bytes=np.zeros(4),
        activation_bytes=np.zeros(4),
        source=np.array([u for u, _, _ in edges], dtype=np.int32),
        target=np.array([v for _, v, _ in edges], dtype=np.int32),
        edge_bytes=np.array([x for _, _, x in edges], dtype=float),
        colocation=np.array([-1, -1, 0, 0]),
    )
    return StepProblem(graph, FOUR, contention)


def plan(device: list[int], start: list[float], *sent: tuple[int, int, float]) -> StepPlan:
    """Build a plan with the transfers (op, receiver, start)."""
    op, to, at = zip(*sent, strict=True) if sent else ((), (), ())
    return StepPlan(NAMES, np.array(device), np.array(start), list(op), list(to), list(at))


@pytest.mark.parametrize(
    ("device", "start", "makespan"),
    [
        # one device, one after the other
        ([0, 0, 1, 1], [0, 1, 0, 1], 2.0),
        # b on the same server gets a's 10 bytes after 1 s; c and d elsewhere wait for nothing
        ([0, 1, 2, 2], [0, 2, 0, 1], 3.0),
        # b in the other server: 1 + 10.5 s
        ([0, 2, 3, 3], [0, 11.5, 0, 1], 12.5),
        # idling is allowed
        ([0, 1, 2, 2], [0, 5, 7, 9], 10.0),
    ],
)
def test_makespan(device: list[int], start: list[float], makespan: float) -> None:
    """The makespan is the end of the last op, delays by the lowest level that joins two devices."""
    verdict = verify(problem([(0, 1, 10.0)]), plan(device, start))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(makespan)


@pytest.mark.parametrize(
    ("device", "start", "words"),
    [
        ([0, 1, 2, 2], [0, 1.9, 0, 1], "precedence: op b starts at 1.9, the output of op a is there at 2"),
        ([0, 2, 3, 3], [0, 2, 0, 1], "precedence: op b starts at 2, the output of op a is there at 11.5"),
        ([0, 1, 2, 2], [0, 2, 0, 0.5], "device 2: op d starts at 0.5, before op c ends"),
        ([0, 1, 2, 3], [0, 2, 0, 1], "colocation: op d is on device 3, op c of its class on 2"),
        ([0, 2, 2, 2], [0, 12, 0, 1], "memory: the ops on device 2 need 12 B, it has 10 B"),
        ([0, 9, 2, 2], [0, 12, 0, 1], "op b is on device 9, the cluster has 4"),
    ],
)
def test_violations(device: list[int], start: list[float], words: str) -> None:
    """A broken constraint is named."""
    verdict = verify(problem([(0, 1, 10.0)]), plan(device, start))
    assert verdict.objective is None
    assert verdict.violations[0] == words


A_TO_TWO = [(0, 1, 10.0), (0, 2, 10.0)]


def test_contention_orders_transfers() -> None:
    """One device sends one thing at a time, so the second receiver waits for the first transfer to be through."""
    instance = problem(A_TO_TWO, contention=True)
    late = plan([0, 1, 2, 2], [0, 2, 12.5, 13.5], (0, 1, 1.0), (0, 2, 2.0))
    assert verify(instance, late).objective == pytest.approx(14.5)
    clash = plan([0, 1, 2, 2], [0, 2, 12, 13], (0, 1, 1.0), (0, 2, 1.5))
    assert verify(instance, clash).violations == (
        "link device 0 out: the output of op a is sent before that of op a is through",
    )
    free = plan([0, 1, 2, 2], [0, 2, 11.5, 12.5])
    assert verify(problem(A_TO_TWO), free).objective == pytest.approx(13.5)


def test_contention_on_uplink() -> None:
    """Transfers between other devices share the link out of the server."""
    instance = problem([(0, 2, 10.0), (1, 3, 10.0)], contention=True)
    both = plan([0, 1, 2, 2], [0, 0, 11.5, 12.5], (0, 2, 1.0), (1, 2, 1.0))
    words = verify(instance, both).violations
    assert "link server 0 out: the output of op b is sent before that of op a is through" in words
    assert "link device 2 in: the output of op b is sent before that of op a is through" in words
    turns = plan([0, 1, 2, 2], [0, 0, 11.5, 22], (0, 2, 1.0), (1, 2, 11.5))
    assert verify(instance, turns).objective == pytest.approx(23.0)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([], "the output of op a is not sent to device 1"),
        ([(0, 1, 1.0), (0, 3, 5.0)], "the output of op a is sent to device 3 for nothing"),
        ([(0, 1, 1.0), (0, 1, 5.0)], "the output of op a is sent to device 1 twice"),
        ([(0, 1, 0.5)], "the output of op a is sent before the op ends"),
        ([(0, 9, 0.5)], "a transfer goes to device 9, the cluster has 4"),
    ],
)
def test_transfers(sent: list[Any], words: str) -> None:
    """What has to be sent is sent once and not too early, and nothing else."""
    verdict = verify(problem([(0, 1, 10.0)], contention=True), plan([0, 1, 2, 2], [0, 9, 0, 1], *sent))
    assert words in verdict.violations


def test_transfers_without_contention() -> None:
    """A plan for links has no meaning where links are no matter."""
    verdict = verify(problem([(0, 1, 10.0)]), plan([0, 1, 2, 2], [0, 2, 0, 1], (0, 1, 1.0)))
    assert verdict.violations == ("the plan schedules transfers, but there is no contention",)


def test_empty_outputs_need_no_link() -> None:
    """An output of no bytes is there at once, contention or not."""
    for contention in (False, True):
        assert verify(problem([(0, 1, 0.0)], contention), plan([0, 2, 3, 3], [0, 1, 0, 1])).objective == 2.0


def test_routes() -> None:
    """A transfer takes the links up to the level that joins its ends and down again."""
    links = Links(FOUR)
    named = [[links.names[x] for x in links.route(*ends)] for ends in ((0, 0), (0, 1), (0, 3))]
    assert named == [
        [],
        ["device 0 out", "device 1 in"],
        ["device 0 out", "server 0 out", "server 1 in", "device 3 in"],
    ]
    every = [[[x for x in links.table()[a, b].tolist() if x >= 0] for b in range(4)] for a in range(4)]
    assert every == [[list(links.route(a, b)) for b in range(4)] for a in range(4)]


def test_plan_of_another_problem() -> None:
    """A plan of another kind is bad input."""
    other = PartitionPlan(NAMES, [0] * 4, [0] * 4)
    with pytest.raises(InstanceError, match="plan: PartitionPlan is not a StepPlan, which answers a step problem"):
        verify(problem([]), other)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("start", [0, -1, 0, 0], r"start\[1\]: -1.0 is negative"),
        ("start", [0, 0, 0], "start: has 3 entries where 4 are expected"),
        ("sent", [3], r"receiver: has 0 entries where 1 are expected"),
    ],
)
def test_bad_plans(field: str, value: list[float], words: str) -> None:
    """A plan that is none is refused where it is made."""
    values: dict[str, Any] = {"ops": NAMES, "device": [0] * 4, "start": [0.0] * 4} | {field: value}
    with pytest.raises(InstanceError, match=words):
        StepPlan(**values)


@pytest.mark.parametrize(("start", "ok"), [(1e-10, True), (3.0 - 1e-10, True), (1.0, False), (1e-7, False)])
def test_no_time_at_either_end(start: float, ok: bool) -> None:
    """An op that takes no time may be at either end of another, both off by rounding, and not within it."""
    four = problem([])
    graph = replace(four.graph, time=np.array([[3.0, 0.0, 1.0, 1.0]]))
    shown = plan([0, 0, 1, 1], [0.0, start, 0.0, 1.0])
    assert verify(replace(four, graph=graph), shown).ok == ok
