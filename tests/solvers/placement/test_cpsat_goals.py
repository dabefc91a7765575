"""The goals communication and fragmentation, exactly and by search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Expected, Fleet, GangJob, PlacementProblem, Task
from gangplan.instances.verify.placement import Fragmentation
from gangplan.solvers.check import check_solver
from gangplan.solvers.method import Suite, suite
from gangplan.solvers.placement.methods import METHODS
from gangplan.solvers.placement.online import Mix, State, mix
from gangplan.solvers.placement.random_problem import random_problem

GOALS = "communication", "fragmentation"


def of_goal(goal: str) -> Suite:
    """Return the suite of placement with random problems of one goal only."""
    tools = suite("placement")
    seeds = [seed for seed in range(200) if random_problem(seed).goal == goal]
    return replace(tools, referee=lambda: (tools.optimum, lambda seed, _: random_problem(seeds[seed])))


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", ["cpsat", "local_search", "topology"])
def test_contract(goal: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT proves both goals, and no search finds less than the optimum."""
    tools = of_goal(goal)
    monkeypatch.setattr("gangplan.solvers.check.suite", lambda name: tools)
    check_solver(METHODS[method], "placement", problems=15)


def test_a_rack_is_worth_a_split() -> None:
    """A gang of six stays in its rack though four of it would fit a node of the other."""
    fleet = Fleet.regular(2, 2, 4, link=40e9, nic=4e9, uplink=2e9)
    speeds = gangs(4).speeds
    jobs = GangJob("full", "resnet50", (4,)), GangJob("some", "resnet50", (3,)), GangJob("x", "resnet50", (6,))
    result = solve(PlacementProblem(fleet, jobs, speeds, goal="communication"), time_limit=30, workers=1)
    # 4 in a node: 6 pairs; 3: 3 pairs; 6 as 4 and 2: 7 pairs inside, 8 across NICs
    assert result.status == "OPTIMAL" and result.objective == pytest.approx((6 + 3 + 7) / 40 + 8 / 4)


def test_gpus_are_kept_for_what_comes() -> None:
    """With tasks of two GPUs to come, single workers go where an even number of GPUs is left, or none."""
    fleet = replace(Fleet.regular(1, 3), gpus=[2, 3, 2])
    jobs = tuple(GangJob(f"j{i}", "resnet50", (1,)) for i in range(3))
    mix = (Expected(Task(Demand(2))),)
    problem = PlacementProblem(fleet, jobs, gangs(4).speeds, goal="fragmentation", mix=mix)
    for method in ("cpsat", "local_search"):
        result = solve(problem, time_limit=30, workers=1, method=method)
        assert result.objective == 0.0 and result.plan is not None
        assert result.plan.workers[result.plan.node == 1].sum() in (1, 3)


def test_search_beats_its_start() -> None:
    """Local search lowers both goals on a crowded batch with tasks of eight GPUs to come."""
    mix = Expected(Task(Demand(8))), Expected(Task(Demand(1, cpu=12.0)))
    for goal in GOALS:
        problem = replace(gangs(24, load=0.7, seed=2, goal=goal, shares=0.5), mix=mix)
        first = solve(problem, time_limit=20, workers=1, method="load_balance")
        found = solve(problem, time_limit=2, workers=1, method="local_search")
        assert found.objective is not None and first.objective is not None
        assert found.bound is not None and found.bound <= found.objective < 0.8 * first.objective


def test_one_measure_of_fragments() -> None:
    """Problems and online policies measure fragmentation alike."""
    rng = np.random.default_rng(0)
    fleet = replace(Fleet.regular(1, 4, 4, cpu=16.0, memory=64.0), gpu_types=("A", "B"), gpu_type=[0, 0, 1, 1])
    kinds = [
        Task(Demand(float(gpu), float(cpu), float(memory)), types)
        for gpu, cpu, memory in zip([0, 0.25, 0.6, 1, 1, 2], [4, 1, 3, 4, 9, 8], [8, 0, 20, 9, 9, 40], strict=True)
        for types in ((), ("A",))
    ]
    seconds = np.ones((2, 8))
    speeds = replace(gangs(4).speeds, gpu_types=("A", "B"), compute=seconds)
    problem = PlacementProblem(
        fleet, (GangJob("x", "vgg16", (1,)),), speeds, goal="fragmentation", mix=tuple(Expected(x) for x in kinds)
    )
    measure, state = Fragmentation(problem), State(fleet)
    table = mix.Fragmentation(Mix.of(kinds), state)
    for node in range(4):
        for _ in range(20):
            free = rng.choice([0.0, 0.1, 0.3, 0.6, 1.0], 4)
            cpu, memory = int(rng.integers(0, 17)), int(rng.integers(0, 65))
            hardware = state.hardware[state.slot_of[node : node + 1]]
            other = table(hardware, np.array([cpu * 10**6]), np.array([memory]), (free[None] * 1e6).astype(np.int64))
            left = float(cpu), float(memory), float(fleet.nic[node])
            assert measure(node, free.tolist(), left) == pytest.approx(float(other[0]))
