"""Heuristics for step time: cases solved by hand, and published graphs close to a proved bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan import read, solve
from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StepProblem, TreeTopology, verify
from gangplan.solvers import Run
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.step.heft import pack
from gangplan.solvers.partition.step.methods import METHODS, SUITE
from gangplan.solvers.partition.step.model import prepare

from .conftest import cluster, graph, training

OURS = ("heft", "list_schedule", "local_search", "bounds")
PIPEDREAM = Path(__file__).parents[5] / "shared" / "data" / "pipedream"
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


CASES: dict[str, tuple[StepProblem, float]] = {
    # a 1, b and c 4, d 1 s; outputs take 1 s: a 0-1, b 1-5, c elsewhere 2-6, d 6-7 with c; on one device 10
    "delay": (StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0), cluster(2)), 7.0),
    # the same with empty outputs: both branches at once, 1 + 4 + 1
    "empty output": (StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND), cluster(2)), 6.0),
    # near devices take 1 s, far ones 4: the branch goes to the device next door
    "levels": (StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0), cluster(4, 2)), 7.0),
    # a and d in one class: the branch comes back, d 7-8
    "there and back": (
        StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0, colocation=[0, -1, -1, 0]), cluster(2)),
        8.0,
    ),
    # servers of one device each: c and d elsewhere start at 5 and 9, which is no better
    "far": (StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0), cluster(2, 2)), 10.0),
    # b and c in one class run one after the other
    "colocation": (StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, colocation=[-1, 0, 0, -1]), cluster(2)), 10.0),
    # a chain of 3 s; two ops fit on a device: one cut, the second output (1 s) being the smaller
    "memory": (
        StepProblem(graph([1.0] * 3, [(0, 1), (1, 2)], [2.0, 1.0, 1.0], [1.0] * 3), cluster(2, memory=2.0)),
        4.0,
    ),
    # each op fills a device: a sends to two others at once
    "no contention": (
        StepProblem(graph([1.0, 9.0, 9.0], [(0, 1), (0, 2)], 1.0, [1.0] * 3), cluster(3, memory=1.0)),
        11.0,
    ),
    # over its one link the second output leaves when the first is through
    "contention": (
        StepProblem(graph([1.0, 9.0, 9.0], [(0, 1), (0, 2)], 1.0, [1.0] * 3), cluster(3, memory=1.0), contention=True),
        12.0,
    ),
    # no two ops of 3 s overlap on one device: three of them on two devices
    "one at a time": (StepProblem(graph([3.0] * 3, []), cluster(2)), 6.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", OURS[:-1])
def test_cases_by_hand(name: str, case: str) -> None:
    """No plan beats the optimum, and where annealing ends it is reached."""
    problem, best = CASES[case]
    assert optimum(problem) == pytest.approx(best)
    run = Run(problem, time_limit=60)
    METHODS[name].run(run, SUITE.prepare(run))
    assert run.objective is not None
    assert run.objective >= best * (1 - 1e-9)
    if name == "local_search":
        assert run.objective == pytest.approx(best)


def test_annealing_finds_most_optima() -> None:
    """On 30 small training steps annealing reaches the optimum nearly always, and a plan exists where there is one."""
    reached = feasible = 0
    for seed in range(30):
        problem = training(seed)
        best = optimum(problem)
        run = Run(problem, time_limit=60)
        p = SUITE.prepare(run)
        if not run.stopped:
            METHODS["local_search"].run(run, p)
        assert (run.plan is None) == (best is None)
        if best is not None and run.objective is not None:
            feasible += 1
            reached += run.objective <= best * (1 + 1e-9)
    assert feasible > 20
    assert reached > 0.9 * feasible


def test_packing_needs_every_byte() -> None:
    """Groups of 3, 3, 2, 2, 2 bytes fit into two devices of 6, in one way only."""
    p = prepare(StepProblem(graph([1.0] * 5, [], memory=[3.0, 3.0, 2.0, 2.0, 2.0]), cluster(2, memory=6.0)))
    where = pack(p)
    assert where is not None
    assert np.bincount(where, p.group_memory).tolist() == [6.0, 6.0]


def servers(graph: OpGraph, devices: int, near: float, far: float, memory: float | None = None) -> StepProblem:
    """Put a graph on two servers of A100s, bytes/s `near` within and `far` between them."""
    topology = TreeTopology.regular((Level("server", near), Level("rack", far)), (devices // 2, 2))
    return StepProblem(
        graph, Cluster((DeviceType("A100", memory=memory),), np.zeros(devices, dtype=np.int32), topology)
    )


@pytest.mark.skipif(not PIPEDREAM.exists(), reason="the published profiles are not there")
@pytest.mark.parametrize("name", ["alexnet", "vgg16", "squeezenet1_0", "resnet18", "gnmt", "gnmt_large", "resnet50"])
def test_published_profiles_near_a_bound(name: str) -> None:
    """Training steps on 4 and 8 GPUs of two servers come within 1% of a bound without any solver, by slow links 4%."""
    profile = read(PIPEDREAM / f"{name}.txt").graph
    for devices, near, far in ((4, 300e9, 12.5e9), (8, 300e9, 12.5e9), (4, 12e9, 1.25e9), (8, 12e9, 1.25e9)):
        problem = servers(profile, devices, near, far)
        run = Run(problem, time_limit=60)
        p = SUITE.prepare(run)
        for method in ("heft", "bounds", "list_schedule"):
            if not run.stopped:
                METHODS[method].run(run, p)
        assert run.gap is not None
        assert run.gap < (0.01 if near > 1e11 else 0.04), f"{name}, {devices} devices, {near:g} and {far:g} bytes/s"


@pytest.mark.skipif(not PIPEDREAM.exists(), reason="the published profiles are not there")
def test_memory_splits_a_published_profile() -> None:
    """VGG-16 does not fit on a device of 16 GB: a plan within 1% of the bound cuts it."""
    problem = servers(read(PIPEDREAM / "vgg16.txt").graph, 8, 12e9, 1.25e9, memory=16e9)
    run = Run(problem, time_limit=60)
    p = SUITE.prepare(run)
    for method in ("list_schedule", "bounds"):
        METHODS[method].run(run, p)
    assert run.gap is not None and run.gap < 0.01
    assert len(set(run.plan.device.tolist())) > 1


@pytest.mark.usefixtures("processor_clock")
def test_contention_and_large_graphs() -> None:
    """With contention, and on 2,000 ops, everything ends in time with a verified plan."""
    rng = np.random.default_rng(0)
    n = 2000
    edges = [(int(rng.integers(max(0, v - 30), v)), v) for v in range(1, n) for _ in range(2)]
    made = graph_of(rng.random(n), sorted(set(edges)))
    for contention in (False, True):
        problem = StepProblem(made, cluster(4, 2, near=1e9, far=1e8), contention)
        result = solve(problem, time_limit=1.5, workers=1, method="local_search")
        assert result.plan is not None
        assert verify(problem, result.plan).ok
        assert result.wall_seconds < 15.0


def graph_of(seconds: np.ndarray, edges: list[tuple[int, int]]) -> OpGraph:
    """Make a graph with names by number."""
    n = len(seconds)
    small = graph([1.0], [])
    source = np.array([u for u, _ in edges], dtype=np.int32)
    return replace(
        small,
        names=tuple(f"op{i}" for i in range(n)),
        time=seconds[None],
        **{field: np.zeros(n) for field in ("memory", "parameter_bytes")},
        activation_bytes=np.full(n, 1e7),
        source=source,
        target=np.array([v for _, v in edges], dtype=np.int32),
        edge_bytes=np.full(len(edges), 1e7),
        colocation=np.full(n, -1),
        twin=np.full(n, -1),
        backward=np.zeros(n, dtype=bool),
    )
