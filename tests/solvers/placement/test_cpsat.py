"""Exact placement: CP-SAT and patterns against enumeration, hints, and what must be proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from gangplan import solve
from gangplan.instances import verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.solvers import Run
from gangplan.solvers.check import check_solver
from gangplan.solvers.placement.columns import Columns
from gangplan.solvers.placement.cpsat import hint, suitable_solver
from gangplan.solvers.placement.cpsat_goals import goal_of
from gangplan.solvers.placement.cpsat_model import Assignment
from gangplan.solvers.placement.enumeration import optimum
from gangplan.solvers.placement.gpu_assignment import as_plan
from gangplan.solvers.placement.local_search import local_search
from gangplan.solvers.placement.methods import METHODS
from gangplan.solvers.placement.prepare import Batch, suits_patterns
from gangplan.solvers.placement.random_problem import random_problem


def test_cpsat_keeps_the_contract() -> None:
    """CP-SAT passes the check that third parties run on theirs."""
    check_solver(METHODS["cpsat"], "placement", problems=12)


def test_patterns_agree_with_enumeration() -> None:
    """Bounds of column generation are never above the optimum, the plans of patterns never below it."""
    count = 0
    for seed in range(400):
        problem = random_problem(seed)
        best = optimum(problem)
        batch = Batch(problem)
        if best is None or not suits_patterns(batch):
            continue
        count += 1
        run = Run(problem, time_limit=10.0)
        METHODS["patterns"].run(run, batch)
        assert run.bound is None or run.bound <= best * (1 + 1e-6), seed
        assert run.objective is None or run.objective >= best * (1 - 1e-9), seed
        assert not run.infeasible and not run.notes, (seed, run.notes)
    assert count >= 20


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
    status = suitable_solver(run).solve(Assignment(Batch(problem)).model)
    assert (status == cp_model.OPTIMAL, status == cp_model.INFEASIBLE) == (fits, not fits)


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


def test_hint_is_complete_and_taken() -> None:
    """CP-SAT takes the hint of every variable: with the search limited to it, it has the plan it started from."""
    problem = gangs(8, racks=2, nodes=3, gpus=4, load=0.9, seed=3)
    run, batch = Run(problem, time_limit=20.0), Batch(problem)
    local_search(run, batch, 200)
    assert run.plan is not None
    plan = Assignment(batch)
    goal_of(plan, run.objective)
    hint(run, batch, plan)
    assert len(plan.model.proto.solution_hint.vars) == len(plan.model.proto.variables)
    solver = suitable_solver(run)
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(plan.model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    found = as_plan(batch, plan.rows(solver.value), lambda n: plan.packing(solver.value, n))
    assert verify(problem, found).objective == pytest.approx(run.objective, rel=1e-6)


def test_columns_bound_is_above_the_cheap_one() -> None:
    """Column generation proves more than the bounds that cost nothing, where jobs must share nodes."""
    problem = gangs(16, load=0.95, seed=19)
    run = Run(problem, time_limit=20.0)
    columns = Columns(run, Batch(problem))
    assert columns.solve()
    assert columns.bound > 32.3  # the cheap bounds: 30.7


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
        METHODS["cpsat"].run(run, Batch(run.problem))
        assert run.stop_reason == "proved", seed
        assert run.objective == pytest.approx(unit * (optimum(problem) or 0.0), rel=1e-6), seed


@pytest.mark.parametrize("seed", [2, 33])
def test_cpsat_where_nothing_communicates(seed: int) -> None:
    """Gangs that cost nothing wherever they are have a model, and its optimum is 0."""
    run = Run(replace(random_problem(seed), goal="communication"), time_limit=20.0)
    METHODS["cpsat"].run(run, Batch(run.problem))
    assert run.objective == 0.0 and run.stop_reason == "proved"
