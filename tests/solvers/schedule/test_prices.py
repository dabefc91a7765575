"""Prices of GPU-seconds: their bound is near that of the time-indexed LP, and never above the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.schedule.methods import METHODS, SUITE


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
