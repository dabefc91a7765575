"""The certificate of schedules: cases argued by hand, and all thresholds and prices against enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.certificates.starts import StartsCertificate
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.method import suite


def problem_of(
    *jobs: tuple[int, float], gpus: int = 1, goal: str = "makespan", release: float = 0.0, **more: Any
) -> ScheduleProblem:
    """Return rigid jobs, each of some GPUs and seconds."""
    own = tuple(MoldableJob(f"j{i}", (d,), (p,), release=release, **more) for i, (d, p) in enumerate(jobs))
    return ScheduleProblem(own, Pool(gpus), goal)


def starts(threshold: Any, times: Any = (), prices: Any = (), steps: int = 1000) -> dict[str, Any]:
    """Return a document."""
    return {"argument": "starts", "threshold": threshold, "times": [*times], "prices": [*prices], "steps": steps}


@pytest.mark.parametrize("clock", [0.0, 1.7e9])
def test_prices_of_two_jobs(clock: float) -> None:
    """Alone each ends after 2 s; at 1/2 a GPU-second until 2 s both cost as much whenever they run."""
    # one after the other they end at 2 and 4, in the mean after 3 s; Unix times have seven digits behind the point
    problem, loss = problem_of((1, 2.0), (1, 2.0), goal="mean_jct", release=clock), 1e-4 if clock else 1e-7
    assert 2 - loss < verify_bound(problem, starts(4, steps=0)) < 2
    # cost of a run: at 0 s 2/2 + 1 = 2, at 2 s 4/2 = 2; two jobs: 4, less the 1 that the GPU is worth until 2 s
    paid = starts(3, [0, 2, 4], ["1/2", 0], steps=0)
    assert 3 - loss < verify_bound(problem, paid) < 3
    assert 3 - loss < verify_bound(problem, starts(3)) < 3
    with pytest.raises(InstanceError, match="threshold: a schedule costs less than 7/2"):
        verify_bound(problem, starts("7/2"))
    with pytest.raises(InstanceError, match="steps: are over"):
        verify_bound(problem, starts(3, steps=1))
    for wrong in ({"times": [0, 0, 4]}, {"prices": ["-1/2", "0"]}, {"prices": ["1/2"]}):
        with pytest.raises(InstanceError, match=r"times|prices"):
            verify_bound(problem, paid | wrong)


@pytest.mark.parametrize("clock", [0.0, 1.7e9])
def test_makespans_by_area_and_by_search(clock: float) -> None:
    """Three jobs of 2 GPUs and 2 s hold 12 GPU-seconds, 4 s of three GPUs; but no two run together: 6 s."""
    problem, loss = problem_of((2, 2.0), (2, 2.0), (2, 2.0), gpus=3, release=clock), 1e-4 if clock else 1e-7
    area = starts(int(clock) + 6, [0, 6], ["1/3"], steps=0)
    assert clock + 4 - loss < verify_bound(problem, area) < clock + 4
    assert clock + 6 - loss < verify_bound(problem, area | {"steps": 100}) < clock + 6
    with pytest.raises(InstanceError, match="costs less"):
        verify_bound(problem, starts(int(clock) + 7))


def test_goals_by_deadlines() -> None:
    """Two jobs of 2 s on one GPU, due at 3 s: one is left out at the price of 5."""
    problem = problem_of((1, 2.0), (1, 2.0), goal="blocked", deadline=3.0, value=5.0)
    assert 5 - 1e-6 < verify_bound(problem, starts(5)) < 5
    with pytest.raises(InstanceError, match="costs less"):
        verify_bound(problem, starts(6))
    # at 1 a GPU-second until 3 s each pays 2, less the 3 that the GPU is worth: 1, and prices are whole fives
    assert 5 - 1e-6 < verify_bound(problem, starts(5, [0, 3], [1], steps=0)) < 5
    late = replace(problem.jobs[0], deadline=1.0, value=None)
    must = ScheduleProblem((late,), Pool(1), "makespan")
    assert verify_bound(must, starts(100)) == inf


def test_a_job_of_no_time_waits_for_its_release() -> None:
    """A job of 0 s that is released at 6 s ends then, whatever else runs."""
    own = (MoldableJob("a", (1,), (0.0,), release=6.0), MoldableJob("b", (1,), (1.0,)))
    assert 6 - 1e-6 < verify_bound(ScheduleProblem(own, Pool(1), "makespan"), starts(6)) < 6


def test_nodes_are_counted_only() -> None:
    """Three jobs of 2 GPUs run two at a time on two nodes of three, all at once on six GPUs: no proof of the former."""
    problem = replace(problem_of((2, 2.0), (2, 2.0), (2, 2.0)), capacity=NodePool(2, 3))
    assert suite("schedule").optimum(problem) == 4
    with pytest.raises(InstanceError, match="costs less"):
        verify_bound(problem, starts(4))
    assert 2 - 1e-6 < verify_bound(problem, starts(2)) < 2


def moved(problem: ScheduleProblem, by: float) -> ScheduleProblem:
    """Return the problem on another clock."""
    own = tuple(
        replace(job, release=job.release + by, deadline=None if job.deadline is None else job.deadline + by)
        for job in problem.jobs
    )
    horizon = None if problem.horizon is None else problem.horizon + by
    return replace(problem, jobs=own, horizon=horizon)


@pytest.mark.parametrize("clock", [0.0, 1.7e9])
def test_any_threshold_and_prices_against_enumeration(clock: float) -> None:
    """No bound is above the optimum; on counted GPUs every threshold up to it is proved, every other refused."""
    rng, proved, refused = np.random.default_rng(5), 0, 0
    for seed in range(120):
        problem = moved(suite("schedule").random_problem(seed, ""), clock)
        optimum, zero = suite("schedule").optimum(problem), Run(problem, time_limit=1.0).zero
        if optimum is None:
            continue
        end = float(sum(max(job.durations) for job in problem.jobs))
        times = tuple(Fraction(x) for x in sorted({0.0, *(rng.random(3) * end).tolist()}))
        prices = tuple(Fraction(x) for x in (rng.random(len(times) - 1) ** 4 * 3).tolist())
        for factor in (0.5, 1 - 1e-8, 1.01, 1.5):  # optima are rounded
            threshold = Fraction(zero) + Fraction((optimum - zero) * factor)
            made = StartsCertificate(threshold, times, prices, 10**6 * int(rng.integers(2)))
            try:
                bound = verify_bound(problem, made)
            except InstanceError as error:
                assert "costs less" in str(error)
                assert factor > 1 or clock or not isinstance(problem.capacity, Pool), seed
                refused += 1
            else:
                assert bound <= optimum, (seed, factor)
                if made.steps and isinstance(problem.capacity, Pool) and clock == 0:
                    assert factor <= 1 or optimum == zero, (seed, factor)
                    assert factor == 0.5 or certifies(bound, optimum, zero), seed
                    proved += 1
    assert (proved > 10 or clock) and refused > 30
