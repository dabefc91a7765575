"""Plain models of placement: a case by hand, and batches of all kinds against enumeration."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import highspy
import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.placement.problem import GOALS
from gangplan.solvers import Run
from gangplan.solvers.highs import programme
from gangplan.solvers.method import suite
from gangplan.solvers.placement.enumeration import random_problem
from gangplan.solvers.placement.plain import plain_milp
from gangplan.solvers.plain import PlainRows
from tests.seeds import some

NAMES = ["milp", "plain_cpsat", "plain_milp"]
TOOLS = suite("placement")


@pytest.mark.parametrize("name", NAMES)
def test_enumeration(name: str) -> None:
    """Each proves the optimum, or that there is none, of batches of every goal in which every constraint may bind."""
    none, goals, running, shares = 0, Counter[str](), 0, 0
    for seed in (*range(24), *(some(range(24, 80), 7) if name == "plain_cpsat" else ())):
        problem = random_problem(seed)
        if seed % 2:
            duty = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], 2)
            gpu = problem.speeds.gpu if seed % 4 == 1 else problem.speeds.host / 2  # one may suffer less on one GPU
            problem = replace(problem, speeds=replace(problem.speeds, duty=duty, gpu=gpu))
        best, run = TOOLS.optimum(problem), Run(problem, time_limit=60, bare=name != "milp")
        prepared = TOOLS.prepared(run)
        if not run.stopped:
            TOOLS.methods[name].run(run, prepared)
        none += best is None
        goals[problem.goal] += 1
        running += bool(problem.running)
        shares += any(0 < job.worker.gpu < 1 for job in problem.jobs)
        assert run.infeasible == (best is None), seed
        if best is not None:
            assert run.objective == pytest.approx(best, rel=2e-6), seed
            assert run.gap is not None and run.gap <= 1e-6, seed
    assert none > 0 and len(goals) == len(GOALS) and running > 5 and shares > 5


def three() -> PlacementProblem:
    """Return a gang of two and two jobs of one worker, on two nodes of two GPUs and one switch."""
    fleet = Fleet(
        names=("x", "y"),
        gpu_types=("gpu",),
        gpu_type=np.zeros(2, dtype=int),
        gpus=np.full(2, 2),
        cpu=np.full(2, 8.0),
        memory=np.full(2, 8.0),
        link=np.full(2, 10.0),
        topology=TreeTopology((Level("rack", 1.0),), np.zeros((1, 2), dtype=int)),
    )
    jobs = tuple(
        GangJob(name, "m", (workers,), Demand(1.0), "ring") for name, workers in (("a", 2), ("b", 1), ("c", 1))
    )
    one, fifth = np.ones((1, 1)), np.full((1, 1), 0.2)
    return PlacementProblem(fleet, jobs, SpeedModel(("m",), ("gpu",), one, np.ones(1), np.zeros(1), fifth, one))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("value", "best"), [(None, 3.4), (1.0, 3.0), (1.25, 3.25)])
def test_a_gang_goes_where_it_is_alone(name: str, value: float | None, best: float) -> None:
    """Two nodes of two GPUs, a gang of two, b and c of one worker, who add a fifth to whoever is beside them.

    The gang together leaves b and c beside one another: 1 + 1.2 + 1.2. Apart, all three have somebody beside them, and
    the gang sends as well. With a value of 1 or 1.25 b is left out, and c is alone: 1 + 1 + value.
    """
    problem = three()
    jobs = (problem.jobs[0], replace(problem.jobs[1], value=value), problem.jobs[2])
    result = solve(replace(problem, jobs=jobs), time_limit=60, method=name, workers=1)
    assert (result.status, result.objective) == ("OPTIMAL", pytest.approx(best))


@pytest.mark.parametrize("name", ["plain_cpsat", "plain_milp"])
def test_lines_meet_where_plans_are(name: str) -> None:
    """A loss of throughput that no line knew of at first is proved to be the least in the end."""
    problem = replace(three(), goal="throughput")
    # b and c lose 1 - 1 / 1.2 each beside one another, see above
    result = solve(problem, time_limit=60, method=name, workers=1)
    assert (result.status, result.objective) == ("OPTIMAL", pytest.approx(1 / 3))


@pytest.mark.parametrize("goal", GOALS)
def test_nothing_is_looked_at_that_costs_more_than_the_plan(goal: str) -> None:
    """The most that the MILP's relaxation may cost is what the plan known does, but for tolerances."""
    most = list[float]()

    def maximise(rows: PlainRows, plan: object) -> None:
        solver, _ = programme(rows, solve_relaxation=True)
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        solver.run()
        most.append(solver.getObjectiveValue() + rows.goal.constant)

    problem = random_problem(1, jobs=3)
    run = Run(replace(problem, goal=goal), time_limit=60)
    TOOLS.draft(run, TOOLS.prepared(run))
    plain_milp(run, minimise=maximise)
    assert most and max(most) <= 1.01
