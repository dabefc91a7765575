"""Bounds, optima and the verifier against docs/placement.md, written down again in plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.solvers import Run
from gangplan.solvers.placement.methods import METHODS, SUITE
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.quick import quick

from ...referee import placement as page
from ...referee.just_fits import just_fits


def agrees(run: Run, best: float | None) -> None:
    """Check what a run has proved, and the goal of its plan, against the optimum."""
    assert not run.infeasible or best is None
    if best is None:
        assert run.plan is None
        return
    assert run.bound is None or run.bound <= best * (1 + 1e-6)
    if run.plan is not None:
        assert run.objective is not None and run.objective >= best * (1 - 1e-8)
        assert run.objective == pytest.approx(page.value(run.problem, run.plan), rel=1e-9, abs=0.0)
        assert run.gap is None or run.gap > 1e-6 or run.objective <= best * (1 + 2e-6)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_exact_methods_and_bounds(first: int) -> None:
    """Bounds are no more than the optimum, plans no less, and an exact method ends with either proof."""
    for seed in range(first, first + 20):
        problem = just_fits(seed)
        best = page.optimum(problem)
        for name in ("patterns", "cpsat"):
            run = Run(problem, time_limit=30, workers=1)
            batch = SUITE.prepare(run)
            if not run.stopped and METHODS[name].suits(batch):
                METHODS[name].run(run, batch)
                if name == "cpsat":
                    rounded = problem.goal == "fragmentation"  # in parts of a GPU
                    assert run.infeasible or rounded or not run.objective or (run.gap or 0.0) <= 1e-6, seed
            agrees(run, best)


@pytest.mark.parametrize("weight", [1e-9, 1e9])
def test_any_unit_of_the_goal(weight: float) -> None:
    """A batch is proved optimal whatever its jobs weigh, a light one beside a heavy one too."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=2, nic=1.0, link=10.0)
    host = np.full((1, 1), 0.5)
    speeds = SpeedModel(("a",), ("A100",), np.ones((1, 1)), np.ones(1), np.zeros(1), host, host)
    jobs = tuple(GangJob(f"j{i}", "a", (1 + i % 2,), weight=weight * (1 + i)) for i in range(3))
    for goal in ("slowdown", "throughput"):
        problem = PlacementProblem(fleet, jobs, speeds, goal=goal)
        for light in (problem, replace(problem, jobs=(replace(jobs[0], weight=weight * 1e-6), *jobs[1:]))):
            for name in ("patterns", "cpsat"):
                run = Run(light, time_limit=30, workers=1)
                batch = SUITE.prepare(run)
                if METHODS[name].suits(batch):
                    METHODS[name].run(run, batch)
                    agrees(run, page.optimum(light))
                    assert run.gap is not None and run.gap <= 1e-6


@pytest.mark.parametrize(("weight", "uplink"), [(1e9, 1.0), (1.0, 1e-9)])
def test_a_costly_plan_is_a_plan(weight: float, uplink: float) -> None:
    """That all plans cost more than a model of whole numbers counts does not make a batch infeasible."""
    fleet = Fleet.regular(racks=2, nodes=1, gpus=1, nic=1.0, link=10.0, uplink=uplink)
    none = np.zeros((1, 1))
    speeds = SpeedModel(("a",), ("A100",), np.ones((1, 1)), np.ones(1), np.zeros(1), none, none)
    problem = PlacementProblem(fleet, (GangJob("x", "a", (2,), weight=weight),), speeds)
    run = Run(problem, time_limit=30, workers=1)
    METHODS["cpsat"].function(run, PreparedBatch(problem))  # without a plan to begin with
    assert not run.infeasible and run.objective == pytest.approx(page.optimum(problem), rel=1e-6)


def test_first_plans_keep_every_constraint() -> None:
    """What first fit finds without a look at the clock passes the verifier, and costs what the page says."""
    found = 0
    for seed in range(300):
        problem = just_fits(seed)
        run = Run(problem, time_limit=0.0)
        quick(run, PreparedBatch(problem))
        if run.plan is not None:
            found += 1
            assert verify(problem, run.plan).objective == pytest.approx(
                page.value(problem, run.plan), rel=1e-9, abs=0.0
            )
    assert found >= 100
