"""Column generation step by step is the library's own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gangplan import teach, verify_bound
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.placement.pattern_bound import PatternBound
from gangplan.solvers.placement.prepare import PreparedBatch, suits_patterns

SUITED = [s for s in range(60) if suits_patterns(PreparedBatch(suite("placement").random_problem(s, "")))]


@pytest.mark.parametrize("seed", SUITED[:8])
def test_bounds_rise_to_those_of_columns(seed: int) -> None:
    """The bound never falls, is no less than that of patterns in the end, and no plan by enumeration is below it."""
    problem = suite("placement").random_problem(seed, "")
    run = Run(problem, time_limit=60)
    batch = suite("placement").prepare(run)
    if run.infeasible:
        return
    PatternBound(run, batch).solve()
    steps = list(teach.column_generation(problem))
    bounds = [s.bound for s in steps if s.bound is not None]
    assert bounds == sorted(bounds)
    optimum = suite("placement").optimum(problem)
    assert optimum is not None and bounds[-1] <= optimum * (1 + 1e-9)
    assert bounds[-1] >= (run.bound or 0.0) - 1e-6
    assert steps[-1].objective == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("seed", SUITED[:8])
def test_last_prices_are_a_certificate(seed: int) -> None:
    """The prices of the last step, as they are, prove what the steps say: one for each family, nothing to look up."""
    problem = suite("placement").random_problem(seed, "")
    try:
        *_, last = teach.column_generation(problem)
    except InstanceError:
        return
    prices = [str(Fraction(x).limit_denominator(10**9)) for x in last.prices.values()]
    document = {"argument": "covers", "threshold": "0", "prices": prices, "steps": 1_000_000}
    assert last.bound is not None and last.objective is not None
    assert float(verify_bound(problem, document)) == pytest.approx(last.bound, rel=1e-5)


def test_last_prices_are_by_family() -> None:
    """Gangs of one worker that differ in name only have one price, by the name of the first; others one each."""
    *_, before, last = teach.column_generation(teach.greedy_trap().problem)
    assert list(last.prices) == list(before.prices)
    slower, ones = [[0.1, 0.5], [0.7, 0.2]], np.ones((2, 2))
    speeds = SpeedModel(("a", "b"), ("A100",), [[0.1, 0.2]], [1e8, 1e9], [0.5, 0.5], host=slower, gpu=ones)
    gangs = tuple(GangJob(f"{model}{i}", model, workers=(1,)) for i in range(3) for model in "ab")
    problem = PlacementProblem(Fleet.regular(racks=1, nodes=3, gpus=2), gangs, speeds)
    *_, last = teach.column_generation(problem)
    # notebook 4 has 1.3 and 1.4; with all GPUs taken as much more for each gang, and less for a node, is as good
    assert list(last.prices) == ["a0", "b0"]
    assert last.prices["b0"] - last.prices["a0"] == pytest.approx(0.1) and last.prices["a0"] > 1.3 - 1e-6
    document = {"argument": "covers", "threshold": "0", "prices": [str(Fraction(x)) for x in last.prices.values()]}
    assert float(verify_bound(problem, {**document, "steps": 10_000})) == pytest.approx(6.9, rel=1e-6)


def test_some_problems_are_suited() -> None:
    """There are random problems to hold the steps to."""
    assert len(SUITED) >= 4


def test_the_trap_by_columns() -> None:
    """The master problem comes down to the optimum, each gang pays no more than that in all, and a plan is chosen."""
    lesson = teach.greedy_trap()
    steps = list(teach.column_generation(lesson.problem))
    assert "no column costs less than it is paid: done" in steps[-2].text
    assert sum(steps[-2].prices.values()) >= lesson.optimum - 1e-6
    assert steps[0].objective == pytest.approx(7.0) and steps[-1].objective == pytest.approx(lesson.optimum)
    assert set(steps[-2].prices) == {job.name for job in lesson.problem.jobs}


def test_what_columns_do_not_say_is_refused() -> None:
    """Gangs of several sizes and other kinds of problems are refused by name."""
    unsuited = next(s for s in range(60) if s not in SUITED)
    with pytest.raises(InstanceError, match=r"problem: (column generation needs the goal slowdown|there is no plan)"):
        teach.column_generation(suite("placement").random_problem(unsuited, ""))
    with pytest.raises(InstanceError, match="problem: column generation is shown on a PlacementProblem"):
        teach.column_generation(teach.two_jobs().problem)  # type: ignore[arg-type]
