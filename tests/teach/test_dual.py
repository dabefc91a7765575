"""Dual ascent step by step proves bounds by its prices."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers.method import suite

JOBS = (
    MoldableJob("a", (1, 2, 4), (8.0, 5.0, 3.0), weight=2.0),
    MoldableJob("b", (2,), (3.0,), weight=3.0),
    MoldableJob("c", (1,), (6.0,)),
    MoldableJob("d", (4,), (2.0,), release=2.0, weight=4.0),
)


def lagrange(problem: ScheduleProblem, prices: dict[str, float]) -> float:
    """Return the bound of prices by looking at many starts of each job: from above, since none is left out."""
    begins = np.array([float(x) for x in prices])
    width, pi = begins[1] - begins[0], np.array(list(prices.values()))

    def paid(low: float, high: float) -> float:
        return float((np.clip(np.minimum(high, begins + width) - np.maximum(low, begins), 0, None) * pi).sum())

    total = -problem.capacity.gpus * width * pi.sum()  # type: ignore[union-attr]
    for job in problem.jobs:
        starts = np.linspace(job.release, begins[-1] + width, 2001)
        total += min(
            job.weight * (s + p) + d * paid(s, s + p)
            for d, p in zip(job.degrees, job.durations, strict=True)
            for s in starts
        )
    return float(total)


def test_prices_prove_the_bound() -> None:
    """At the prices of a step the cheapest starts cost what the step says, the bound rises, and no plan is below it."""
    problem = ScheduleProblem(JOBS, Pool(4))
    steps = list(teach.dual_ascent(problem))
    assert len(steps) > 10
    bounds = [s.bound for s in steps if s.bound is not None]
    assert bounds == sorted(bounds)
    optimum = suite("schedule").optimum(problem)
    assert optimum is not None and bounds[-1] <= optimum < bounds[-1] * 1.25
    for step in (steps[5], steps[-1]):
        proved = float(step.text.split("prove ")[1].split()[0].rstrip(";"))
        assert lagrange(problem, dict(step.prices)) == pytest.approx(proved, rel=2e-3)
    values = [s.objective for s in steps if s.objective is not None]
    assert values == sorted(values, reverse=True) and values[-1] >= optimum


def test_what_has_no_prices() -> None:
    """Other problems, and jobs without a plan, are refused by name."""
    with pytest.raises(InstanceError, match="problem: dual ascent is shown on a ScheduleProblem"):
        teach.dual_ascent(teach.greedy_trap().problem)  # type: ignore[arg-type]
    late = ScheduleProblem((MoldableJob("late", (1,), (2.0,), deadline=1.0),), Pool(1))
    with pytest.raises(InstanceError, match="there is no plan: job late must run"):
        teach.dual_ascent(late)
