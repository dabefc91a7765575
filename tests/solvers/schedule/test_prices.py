"""Prices of GPU-seconds: their bound is near that of the time-indexed LP, and never above the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers import Run, native
from gangplan.solvers.schedule import kernels, price_kernels, run_kernels
from gangplan.solvers.schedule.classic import BY_PRICES
from gangplan.solvers.schedule.enumeration import random_problem
from gangplan.solvers.schedule.methods import METHODS, SUITE
from gangplan.solvers.schedule.prepare import prepare

from ..uncompiled import uncompiled


def lp_of(problem: ScheduleProblem) -> Run:
    """Return the run of the method `lp`, after the priority lists."""
    run = Run(problem, time_limit=60.0)
    p = SUITE.prepare(run)
    for name in ("lists", "lp"):
        METHODS[name].run(run, p)
    return run


def test_one_gpu_is_nearly_tight() -> None:
    """On one GPU Smith's order is best: the LP is tight but for the grid, and its order is Smith's."""
    rng = np.random.default_rng(0)
    seconds, weight = rng.integers(1, 9, 12).astype(float), rng.integers(1, 9, 12).astype(float)
    jobs = tuple(MoldableJob(f"j{i}", (1,), (seconds[i],), weight=weight[i]) for i in range(12))
    order = np.argsort(seconds / weight)
    best = float(weight[order] @ np.cumsum(seconds[order]))
    run = lp_of(ScheduleProblem(jobs, Pool(1)))
    assert run.objective == pytest.approx(best)
    assert run.bound is not None and 0.99 * best <= run.bound <= best


@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct", "throughput"])
def test_bounds_meet_lists(goal: str) -> None:
    """On 120 jobs in a queue the bound is above those in closed form, and rounded lists are near it."""
    problem = moldable(120, load=2.0, seed=1, goal=goal)
    start = Run(problem, time_limit=60.0)
    SUITE.prepare(start)
    run = lp_of(problem)
    assert run.bound is not None and run.bound > (start.bound or 0.0)
    assert run.objective is not None and run.objective >= run.bound * (1 - 1e-9)
    if goal == "weighted_completion":
        assert run.gap is not None and run.gap < 0.06


def test_a_thousand_jobs_are_within_two_percent() -> None:
    """Where queues are long, the rounded lists of a thousand jobs are within 2% of the bound."""
    run = lp_of(moldable(1000, load=2.0, seed=3))
    assert run.gap is not None and run.gap < 0.02


def test_the_cheapest_runs_are_those_of_every_point_of_the_grid() -> None:
    """What each option costs at least is the least over runs that start or end on the grid, the release, the deadline.

    Each run is priced by an integral of its own.
    """
    compared, source = 0, uncompiled(native, kernels, price_kernels)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = prepare(random_problem(seed, jobs=6))
        data, count = kernels.Data(p), int(rng.integers(2, 9))
        step = float(rng.choice([1.0, p.horizon / count + 0.1]))
        given = rng.uniform(0, 1, count) * (rng.random(count) < 0.7), float(p.release.min()), step
        grid, slow = price_kernels.Grid(*given), (source.Grid(*given), source.Data(p))
        cost, start = np.zeros(len(p.gpus)), np.zeros(len(p.gpus))
        run_kernels.cheapest(grid, data, p.total, cost, start)
        points = grid.zero + step * np.arange(count + 1)
        for o, j in enumerate(p.owner.tolist()):
            last = p.due[o] - p.seconds[o]
            starts = [p.release[j], last, *points, *(points - p.seconds[o])]
            able = [s for s in starts if p.release[j] <= s <= last and np.isfinite(s)]
            least = min((float(source.run_cost(*slow, j, o, s)) for s in able), default=np.inf)
            assert cost[o] == pytest.approx(least, rel=1e-9, abs=1e-9)
            if np.isfinite(least):
                assert source.run_cost(*slow, j, o, float(start[o])) == pytest.approx(least, rel=1e-9, abs=1e-9)
                compared += 1
    assert compared > 100


def test_a_long_queue_begins_with_a_list() -> None:
    """The first plan of hundreds of jobs is a list's, or a draft's in a hurry; no list follows prices."""
    problem = moldable(320, load=2.0, seed=4)
    run = Run(problem, time_limit=60.0)
    p = SUITE.prepare(run)
    assert run.plan is None
    SUITE.draft(Run(problem, time_limit=0.0), None)
    SUITE.draft(late := Run(problem, time_limit=0.0), p)
    assert [found.by for found in late.trace] == ["first_come"]
    METHODS["lp"].run(run, p)
    assert run.trace[0].by == "list: smith_now, least work"
    assert {found.by for found in run.trace[1:]} == {BY_PRICES}
    found = run.objective
    METHODS["lists"].run(run, p)
    assert run.objective == found
