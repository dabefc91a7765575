"""Exact placement: CP-SAT and patterns against enumeration, hints, what must be proved, and every goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from gangplan import solve
from gangplan.instances import verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Expected, Fleet, GangJob, PlacementProblem, SpeedModel, Task
from gangplan.instances.verify.placement import Fragmentation
from gangplan.solvers import Run
from gangplan.solvers.check import check_solver
from gangplan.solvers.cpsat_solver import cpsat_solver, model_of
from gangplan.solvers.method import Suite, suite
from gangplan.solvers.placement import plain
from gangplan.solvers.placement.enumeration import optimum, random_problem
from gangplan.solvers.placement.local_search import local_search
from gangplan.solvers.placement.methods import METHODS
from gangplan.solvers.placement.online import FreeState, TaskMix, fgd
from gangplan.solvers.placement.prepare import PreparedBatch, suits_patterns
from gangplan.solvers.plain import PlainRows, Values
from tests.seeds import some


def test_patterns_agree_with_enumeration() -> None:
    """Bounds of column generation are never above the optimum, the plans of patterns never below it."""
    count = 0
    seeds = some(range(400), 4)
    for seed in seeds:
        problem = random_problem(seed)
        best = optimum(problem)
        batch = PreparedBatch(problem)
        if best is None or not suits_patterns(batch):
            continue
        count += 1
        run = Run(problem, time_limit=10.0)
        METHODS["patterns"].run(run, batch)
        assert run.bound is None or run.bound <= best * (1 + 1e-6), seed
        assert run.objective is None or run.objective >= best * (1 - 1e-9), seed
        assert not run.infeasible and not run.notes, (seed, run.notes)
    assert count > len(seeds) // 30


@pytest.mark.parametrize("field", ["cpu", "memory", "nic"])
@pytest.mark.parametrize(
    ("tasks", "hair", "fits"), [(1, 1 - 5e-10, True), (2, 1 - 5e-10, True), (1, 1 - 2e-9, False), (2, 1 - 1e-8, False)]
)
def test_what_just_fits_fits(field: str, tasks: int, hair: float, fits: bool) -> None:
    """The model takes what is a hair too much for a node where the verifier does, and nothing else."""
    one = np.ones((1, 1))
    speeds = SpeedModel(("a",), ("A100",), one, np.zeros(1), np.zeros(1), 0 * one, 0 * one)
    room = {"cpu": 1e9, "memory": 1e12, "nic": 1e12, field: 0.6 * hair}
    fleet, demand = Fleet.regular(1, 1, 4, **room), {field: 0.6 / tasks}
    problem = PlacementProblem(fleet, (GangJob("x", "a", (tasks,), Demand(1, **demand)),), speeds)
    run = Run(problem, time_limit=20.0)
    METHODS["cpsat"].function(run, None)  # without a plan to begin with
    assert (run.plan is not None, run.infeasible) == (fits, not fits)


@pytest.mark.parametrize("method", ["cpsat", "auto"])
def test_nics_decide(method: str) -> None:
    """Two workers that set aside more than half of a NIC each go to two nodes, which costs their gradient."""
    speeds = SpeedModel(
        ("a",), ("A100",), np.array([[1.0]]), np.array([4.0]), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1))
    )
    fleet = Fleet.regular(1, 2, 4, link=10.0, nic=2.0)
    for nic, slowdown in ((1.0, 1.0), (1.1, (1 + 4 / 2) / (1 + 4 / 10))):
        problem = PlacementProblem(fleet, (GangJob("x", "a", (2,), Demand(1, nic=nic)),), speeds)
        result = solve(problem, time_limit=20, workers=1, method=method)
        assert result.status == "OPTIMAL" and result.objective == pytest.approx(slowdown)


def test_the_hint_is_taken() -> None:
    """CP-SAT takes what it is told of the plan it begins with: with the search limited to it, it has that plan."""
    problem = gangs(8, racks=2, nodes=3, gpus=4, load=0.9, seed=3)
    run, batch, looked = Run(problem, time_limit=20.0), PreparedBatch(problem), list[float]()
    local_search(run, batch, 200)
    assert run.objective is not None

    def hinted(rows: PlainRows, plan: Callable[[Values], object]) -> None:
        model, solver = model_of(rows), cpsat_solver(run)
        for x, value in zip(model.proto.solution_hint.vars, model.proto.solution_hint.values, strict=True):
            model.add(model.get_int_var_from_proto_index(x) == value)
        assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        made = plan(lambda x: x.at(lambda j: solver.value(model.get_int_var_from_proto_index(j))))
        looked.append(verify(problem, made).objective or 0.0)

    plain.Gangs(run, PlainRows(run, run.objective, hinted), None)
    assert looked == [pytest.approx(run.objective, rel=1e-6)]


def test_bound_of_patterns_is_above_the_cheap_one() -> None:
    """Column generation proves more than the bounds that cost nothing, where jobs must share nodes."""
    problem = gangs(16, load=0.95, seed=19)
    run = Run(problem, time_limit=20.0)
    METHODS["bounds"].run(run, PreparedBatch(problem))
    assert run.bound is not None and run.bound > 32.3  # the cheap bounds: 30.7


@pytest.mark.parametrize("seed", [0, 5, 14, 19])
def test_sixteen_jobs_are_proved(seed: int) -> None:
    """16 jobs on 16 nodes of 8 GPUs are proved in seconds."""
    result = solve(gangs(16, load=0.6 + 0.35 * seed / 19, seed=seed), time_limit=20.0, workers=2)
    assert result.status == "OPTIMAL"


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_cpsat_in_any_unit_of_the_weights(unit: float) -> None:
    """Weights and values of billionths and of thousands of millions leave CP-SAT as much to minimise as those of 1."""
    for seed in (1, 4):
        problem = random_problem(seed)
        values = [None if job.value is None else job.value * unit for job in problem.jobs]
        jobs = tuple(
            replace(job, weight=job.weight * unit, value=value) for job, value in zip(problem.jobs, values, strict=True)
        )
        running = tuple(replace(run, migration=run.migration * unit) for run in problem.running)
        run = Run(replace(problem, jobs=jobs, running=running), time_limit=20.0)
        METHODS["cpsat"].run(run, PreparedBatch(run.problem))
        assert run.stop_reason == "claimed", seed
        assert run.objective == pytest.approx(unit * (optimum(problem) or 0.0), rel=1e-6), seed


@pytest.mark.parametrize("seed", [2, 33])
def test_cpsat_where_nothing_communicates(seed: int) -> None:
    """Gangs that cost nothing wherever they are have a model, and its optimum is 0."""
    run = Run(replace(random_problem(seed), goal="communication"), time_limit=20.0)
    METHODS["cpsat"].run(run, PreparedBatch(run.problem))
    assert run.objective == 0.0 and run.stop_reason == "claimed"


def test_losses_are_rounded_down() -> None:
    """What CP-SAT proves of throughput lost is no more than the optimum, to more places than a proof needs."""
    proved = 0
    for seed in (x for x in range(120) if random_problem(x).goal == "throughput"):
        run = Run(random_problem(seed), time_limit=20.0)
        METHODS["cpsat"].function(run, None)
        if run.objective and run.bound:
            assert run.bound <= run.objective * (1 + 1e-9), seed
            proved += run.stop_reason == "claimed"
    assert proved > 5


GOALS = "communication", "fragmentation"


def of_goal(goal: str) -> Suite:
    """Return the suite of placement with random problems of one goal only."""
    tools = suite("placement")
    seeds = [seed for seed in range(200) if random_problem(seed).goal == goal]
    return replace(tools, random_problem=lambda seed, _: random_problem(seeds[seed]))


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", ["cpsat", "local_search", "topology"])
def test_goals_of_place_keep_the_contract(goal: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
        found = solve(problem, time_limit=0.5, workers=1, method="local_search")
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
    measure, state = Fragmentation(problem), FreeState(fleet)
    table = fgd.NodeFragments(TaskMix.of(kinds), state)
    for node in range(4):
        for _ in range(20):
            free = rng.choice([0.0, 0.1, 0.3, 0.6, 1.0], 4)
            cpu, memory = int(rng.integers(0, 17)), int(rng.integers(0, 65))
            hardware = state.hardware[state.slot_of[node : node + 1]]
            other = table(hardware, np.array([cpu * 10**6]), np.array([memory]), (free[None] * 1e6).astype(np.int64))
            left = float(cpu), float(memory), float(fleet.nic[node])
            assert measure(node, free.tolist(), left) == pytest.approx(float(other[0]))
