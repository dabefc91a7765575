"""Bounds of placement: below the optimum of every tiny problem, and what they say of large ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import solve
from gangplan.instances import Level, TreeTopology, verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementPlan,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)
from gangplan.solvers import Run
from gangplan.solvers.placement import pattern_bound
from gangplan.solvers.placement.best_case import BestCase
from gangplan.solvers.placement.bounds import bound, impossible
from gangplan.solvers.placement.build import build
from gangplan.solvers.placement.classic import load_balance
from gangplan.solvers.placement.enumeration import optimum, random_problem
from gangplan.solvers.placement.pattern_bound import bounds
from gangplan.solvers.placement.policies import first_fit
from gangplan.solvers.placement.prepare import PreparedBatch

from ...seeds import examples


def crowded(seed: int) -> PlacementProblem:
    """Make gangs that must meet on few nodes: interference and NICs are what the goal is about."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 1, 2, 3], int(rng.integers(3, 5)))
    gpus = int(rng.integers(3, 5))
    nodes = max(2, -(-int(sizes.sum()) // gpus))
    levels = Level("rack", float(rng.choice([1.0, 10.0]))), Level("cluster", float(rng.choice([0.5, 10.0])))
    topology = TreeTopology(levels, np.stack([np.arange(nodes) % 2, np.zeros(nodes, dtype=int)]))
    fleet = Fleet.regular(1, nodes, gpus, cpu=16.0, memory=100.0, link=10.0)
    host = rng.uniform(0.1, 1.0, (2, 2))
    speeds = SpeedModel(
        ("a", "b"), ("A100",), rng.uniform(1, 2, (1, 2)), rng.uniform(0, 4, 2), rng.choice([0.0, 0.5], 2), host, host
    )
    jobs = tuple(
        GangJob(
            f"j{i}",
            str(rng.choice(["a", "b"])),
            (int(size),),
            collective=str(rng.choice(["ring", "tree", "hierarchical"])),
            weight=float(rng.choice([1.0, 3.0])),
        )
        for i, size in enumerate(sizes)
    )
    return PlacementProblem(replace(fleet, topology=topology), jobs, speeds)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6))
def test_bound_is_below_the_optimum(seed: int) -> None:
    """No bound is above the optimum, and only problems without a plan are called impossible."""
    problem = random_problem(seed)
    best, batch = optimum(problem), PreparedBatch(problem)
    if impossible(batch) is not None:
        assert best is None
    elif best is not None:
        assert bound(batch)[0] <= best * (1 + 1e-9) + 1e-12


def by_patterns(problem: PlacementProblem) -> float:
    """Return the bound by patterns of nodes."""
    run, batch = Run(problem, time_limit=60.0), PreparedBatch(problem)
    bounds(run, batch)
    return max(run.bound or 0.0, bound(batch)[0])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_patterns_are_below_the_optimum(seed: int) -> None:
    """No bound is above the optimum where interference and shared NICs make up the goal, whatever the duties."""
    problem = crowded(seed)
    duty = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], 2)
    problem = replace(problem, speeds=replace(problem.speeds, duty=duty))
    best = optimum(problem)
    assert best is not None and by_patterns(problem) <= best * (1 + 1e-9)


def begun(seed: int, *, shares: bool = False) -> PlacementProblem:
    """Make a crowded problem of which some gangs run where a rule has put them, and may move or not.

    With `shares` workers take parts of a GPU, and suffer twice as much from those beside them there.
    """
    problem, rng = crowded(seed), np.random.default_rng([1, seed])
    if shares:
        parts = rng.choice([0.25, 0.3, 0.5, 0.75, 1.0], len(problem.jobs)).tolist()
        jobs = tuple(
            replace(job, worker=Demand(gpu=part if job.workers[0] < 3 else 1.0))
            for job, part in zip(problem.jobs, parts, strict=True)
        )
        problem = replace(problem, jobs=jobs, speeds=replace(problem.speeds, gpu=2 * problem.speeds.host))
    state = build(Run(problem, time_limit=60.0), PreparedBatch(problem), [(first_fit, load_balance)[seed % 2]], "rule")
    assert state is not None
    running = [
        Running(
            problem.jobs[j].name,
            tuple(problem.fleet.names[n] for n in rows),
            tuple(workers for workers, _ in rows.values()),
            movable=bool(rng.random() < 0.4),
            migration=float(rng.choice([0.0, 0.1, 1.0])),
        )
        for j, rows in enumerate(state.rows)
        if rng.random() < 0.6
    ]
    return replace(problem, running=tuple(running))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_patterns_beside_running_gangs(seed: int, shares: bool) -> None:
    """No bound is above the optimum where gangs run, stay, and are met by others, on GPUs of their own or not."""
    problem = begun(seed, shares=shares)
    best = optimum(problem)
    assert best is not None and by_patterns(problem) <= best * (1 + 1e-9)


def test_running_gangs_are_met() -> None:
    """Beside gangs that run the bound by patterns is within 8% of the optimum on average, best cases within 25."""
    problems = [begun(seed) for seed in range(12)]
    best = np.array([optimum(problem) for problem in problems], dtype=float)
    assert (np.array([by_patterns(problem) for problem in problems]) / best).mean() > 0.92
    assert (np.array([bound(PreparedBatch(problem))[0] for problem in problems]) / best).mean() < 0.85


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_patterns_of_any_problem(seed: int) -> None:
    """The bound by patterns is below the optimum with selectors, servers, choices of degree, values and what runs."""
    problem = replace(random_problem(seed), goal="slowdown")
    best = optimum(problem)
    if best is not None:
        assert by_patterns(problem) <= best * (1 + 1e-9) + 1e-12


def test_meetings_are_seen() -> None:
    """On crowded problems the bound by patterns is within 3% of the optimum on average, best cases alone within 12."""
    problems = [crowded(seed) for seed in range(8)]
    best = np.array([optimum(problem) for problem in problems], dtype=float)
    assert (np.array([by_patterns(problem) for problem in problems]) / best).mean() > 0.97
    assert (np.array([bound(PreparedBatch(problem))[0] for problem in problems]) / best).mean() < 0.95


def test_weights_that_hardly_differ() -> None:
    """Jobs whose weights differ by 2% are one family, and each costs what it must by its own weight."""
    jobs = [GangJob(f"j{i}", "a", (1,), weight=weight) for i, weight in enumerate((1.0, 1.02, 1.04))]
    problem = flat(jobs)
    # two meet, each 0.5 s slower by a weight of 1 at least
    assert by_patterns(problem) == pytest.approx(3.06 + 2 * 0.5)


def flat(jobs: list[GangJob], nodes: int = 2, host: float = 0.5, **changes: Any) -> PlacementProblem:
    """Build jobs of one model on one rack of nodes of 4 GPUs; 1 s of compute, 4 B of gradient, 2 B/s NICs."""
    fleet = Fleet.regular(1, nodes, 4, link=10.0, nic=2.0)
    table = np.full((1, 1), host)
    speeds = SpeedModel(("a",), ("A100",), np.array([[1.0]]), np.array([4.0]), np.array([0.0]), table, table)
    return PlacementProblem(fleet, tuple(jobs), speeds, **changes)


def test_three_on_two_nodes() -> None:
    """Of three single workers on two nodes two meet, each 0.5 s slower: 3 + 2 x 0.5, which is also the optimum."""
    problem = flat([GangJob(f"j{i}", "a", (1,)) for i in range(3)])
    assert by_patterns(problem) == pytest.approx(4.0)
    assert optimum(problem) == pytest.approx(4.0)


def test_a_search_that_ends_early_proves_nothing() -> None:
    """No bound is above the optimum where searches for patterns look at a few sets only."""
    for problem in (begun(seed) for seed in range(8)):
        best = optimum(problem)
        with mock.patch.object(pattern_bound, "_STEPS", 2):
            assert best is not None and by_patterns(problem) <= best * (1 + 1e-9)


def test_halves_of_gpus() -> None:
    """Sixteen halves of a GPU fill two nodes, eight on each, where each meets seven: 16 x (1 + 7 x 0.5)."""
    assert by_patterns(flat([GangJob(f"j{i}", "a", (1,), worker=Demand(gpu=0.5)) for i in range(16)])) == pytest.approx(
        72
    )


def test_one_that_may_move() -> None:
    """The three meet no less if one of them runs and may move."""
    jobs = [GangJob(f"j{i}", "a", (1,)) for i in range(3)]
    problem = flat(jobs, running=(Running("j0", ("node0",), (1,), movable=True),))
    assert by_patterns(problem) == pytest.approx(4.0)


def test_those_who_stay_leave_no_node_empty() -> None:
    """Two stay on a node each, so four new workers meet both, over the NICs; if they could go they would make room."""
    jobs = [GangJob("a", "a", (2,)), GangJob("b", "a", (2,)), GangJob("c", "a", (4,))]
    free = flat(jobs)
    stay = replace(free, running=(Running("a", ("node0",), (2,)), Running("b", ("node1",), (2,))))
    assert by_patterns(stay) == pytest.approx(optimum(stay))
    assert by_patterns(free) < 0.9 * by_patterns(stay)


def test_gang_larger_than_a_node() -> None:
    """Six workers on nodes of four cross NICs: a ring moves 2 x 5/6 x 4 B at 2 B/s."""
    batch = PreparedBatch(flat([GangJob("x", "a", (6,))]))
    assert BestCase(batch).floors(0, 6) == pytest.approx((1.0, 20 / 3 / 2))


@pytest.mark.parametrize(
    ("collective", "sync"),
    [
        # four in a node at 10 B/s, 6 B; or one each on four nodes, 6 B at 2 B/s
        ("ring", 0.6),
        ("tree", 0.8),
        ("hierarchical", 0.6),
    ],
)
def test_one_node_is_best(collective: str, sync: float) -> None:
    """A gang that fits a node is fastest there, since its NICs are slower."""
    batch = PreparedBatch(flat([GangJob("x", "a", (4,), collective=collective)], nodes=4))
    assert BestCase(batch).floors(0, 4)[1] == pytest.approx(sync)


def test_communication_of_a_large_gang() -> None:
    """Six GPUs on nodes of four are 6 + 1 pairs inside and 8 across at least; in racks of one node they meet above."""
    problem = flat([GangJob("x", "a", (6,), weight=2.0)], goal="communication")
    found = 2 * (7 / 10 + 8 / 2) * 1e9
    assert bound(PreparedBatch(problem)) == (pytest.approx(found), "best case")
    assert optimum(problem) == pytest.approx(found)
    levels = Level("rack", 2.0), Level("cluster", 1.0)
    topology = TreeTopology(levels, np.array([[0, 1], [0, 0]]))
    apart = replace(problem, fleet=replace(problem.fleet, topology=topology))
    assert bound(PreparedBatch(apart))[0] == pytest.approx(2 * (7 / 10 + 8 / 1) * 1e9)


def test_stranded_gpus() -> None:
    """Of eight GPUs a gang fills six; to half of the tasks, which need more cores than there are, the rest is lost."""
    mix = Expected(Task(Demand(1, cpu=100.0))), Expected(Task(Demand(1)))
    problem = flat([GangJob("x", "a", (2, 6))], goal="fragmentation", mix=mix)
    assert bound(PreparedBatch(problem)) == (pytest.approx(0.5 * 2), "left over")
    assert optimum(problem) == pytest.approx(0.5 * 2)


def test_whole_gpus_left_over() -> None:
    """Five of eight GPUs go: three on one node are all of use to a task of three, and of none to one of four."""
    for gpus, lost in ((3, 0.0), (4, 3.0)):
        for half in (0, 1):  # a share takes one of the three
            jobs = [GangJob("x", "a", (5,)), GangJob("y", "a", (1,), Demand(0.5))][: 1 + half]
            problem = flat(jobs, goal="fragmentation", mix=(Expected(Task(Demand(gpus))),))
            best = 2.5 if half else lost
            assert optimum(problem) == pytest.approx(best)
            assert bound(PreparedBatch(problem))[0] == pytest.approx(best - half * 0.5)


def test_faster_than_the_reference() -> None:
    """A worker and a server a node on eight nodes load NICs less than the reference on two: that is no loss."""
    problem = flat([GangJob("x", "a", (8,), collective="ps", servers=8)], nodes=8)
    plan = PlacementPlan(("x",), [0] * 8, range(8), [1] * 8, [1] * 8, range(8), [0] * 8)
    slowdown = verify(problem, plan).objective
    # 2 x 7/8 gradients of 4 B through a NIC of 2 B/s instead of 2 x 4 x 1/2
    assert slowdown == pytest.approx((1 + 3.5) / (1 + 8))
    assert verify(replace(problem, goal="throughput"), plan).objective == 0.0
    assert bound(PreparedBatch(problem))[0] <= slowdown


@pytest.mark.parametrize("seed", range(2))
def test_generated_batches(seed: int) -> None:
    """On generated batches at high load the bound by patterns sees that gangs must meet."""
    problem = gangs(48, racks=2, nodes=8, load=0.95, seed=seed)
    assert by_patterns(problem) > 1.08 * bound(PreparedBatch(problem))[0]


def test_a_brief_bound_is_no_higher() -> None:
    """In a hurry running jobs cost what they do at best, no more than where they are."""
    lower = 0
    for seed in range(150):
        batch = PreparedBatch(random_problem(np.random.default_rng(seed)))
        brief, thorough = bound(batch, brief=True)[0], bound(batch)[0]
        assert brief <= thorough * (1 + 1e-12)
        lower += brief < thorough
    assert lower > 5


@pytest.mark.parametrize("movable", [False, True])
def test_tolerance_is_a_share_of_the_whole_node(movable: bool) -> None:
    """What a job needs of a node may go over by a billionth of the node, however little of it others leave."""
    one = np.ones((1, 1))
    speeds = SpeedModel(("a",), ("A100",), one, np.zeros(1), np.zeros(1), 0 * one, 0 * one)
    fleet = Fleet.regular(1, 1, 4, cpu=0.9 * (1 - 9e-10))
    jobs = (GangJob("x", "a", (2,), Demand(1, cpu=0.3)), GangJob("y", "a", (1,), Demand(1, cpu=0.3)))
    running = (Running("y", fleet.names, (1,), movable=movable, migration=5.0 * movable),)
    problem = PlacementProblem(fleet, jobs, speeds, running=running)
    for method in ("auto", "first_fit", "plain_milp"):
        result = solve(problem, time_limit=20, workers=1, method=method)
        assert result.objective == pytest.approx(2.0), method
