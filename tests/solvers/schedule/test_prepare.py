"""Where the clock starts, how fine it is and how large the figures are: proofs and plans are right all the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ulp

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import MoldableJob, Pool, SchedulePlan, ScheduleProblem
from gangplan.instances.verify import clock_cost, verify
from gangplan.solvers import Run
from gangplan.solvers.schedule.methods import METHODS, SUITE
from gangplan.solvers.schedule.prepare import prepare

from ...referee.schedule import draw, optimum

UNIX = 1.7e9


def moved(problem: ScheduleProblem, zero: float) -> ScheduleProblem:
    """Return a problem on a clock that shows `zero` where it showed 0."""
    jobs = tuple(
        replace(job, release=job.release + zero, deadline=None if job.deadline is None else job.deadline + zero)
        for job in problem.jobs
    )
    return replace(problem, jobs=jobs)


@pytest.mark.parametrize("name", ["lists", "starts", "cpsat"])
@pytest.mark.parametrize("first", range(0, 120, 40))
def test_against_brute_force(name: str, first: int) -> None:
    """Bounds are at most the optimum, OPTIMAL is, and plans are no better than deadlines with their slack allow."""
    for seed in range(first, first + 40):
        problem = draw(seed)
        best, loose = optimum(problem, False), optimum(problem, True)
        zero = Fraction(clock_cost(problem))
        last = max(job.release + sum(max(other.durations) for other in problem.jobs) for job in problem.jobs)
        gain = sum(job.weight for job in problem.jobs) if problem.goal == "weighted_completion" else 1
        blur = 8 * Fraction(ulp(last)) * Fraction(gain) + 8 * Fraction(ulp(float(zero)))
        run = Run(problem, time_limit=20.0)
        p = SUITE.prepare(run)
        if not run.infeasible and METHODS[name].suits(p):
            METHODS[name].run(run, p)
        assert not any("withdrawn" in note or "refused" in note for note in run.notes), seed
        if best is not None:
            assert not run.infeasible, seed
            if run.bound is not None:
                allowed = Fraction(2, 10**9) * (best - zero) + 4 * Fraction(ulp(float(best)))
                assert Fraction(run.bound) <= best + allowed, seed
            if run.gap is not None and run.gap <= 1e-6:
                assert Fraction(run.objective or 0) - best <= Fraction(2, 10**6) * (best - zero) + blur, seed
        assert run.plan is None or loose is not None, seed
        if run.objective is not None and loose is not None:
            assert Fraction(run.objective) >= loose - blur - Fraction(4, 10**9) * (loose - zero), seed


@pytest.mark.parametrize("zero", [0.0, UNIX])
@pytest.mark.parametrize("kind", ["release", "deadline", "wide", "horizon", "capacity"])
def test_slack_of_the_verifier(zero: float, kind: str) -> None:
    """A time may be off by a billionth of what it is about and four last places, and by no more, on any clock."""
    for share, fine in ((0.5, True), (3.0, False)):
        off = share * (1e-9 * 1024.0 + 4 * ulp(zero + 2048.0))
        due = zero + 1024.0 if kind in ("deadline", "wide") else None
        release = 0.0 if kind in ("wide", "horizon") else zero
        jobs = tuple(MoldableJob(name, (1,), (1024.0,), release=release, deadline=due) for name in "ab")
        start = np.array([zero, zero + 1024.0])
        start[0] += off if kind in ("deadline", "wide", "horizon") else 0.0
        start[1] -= off if kind == "capacity" else 0.0
        if kind != "capacity":
            jobs, start = jobs[:1], start[:1]
        if kind == "release":
            jobs = (replace(jobs[0], release=zero + off),)
        problem = ScheduleProblem(jobs, Pool(1))
        if kind == "horizon":
            problem = replace(problem, goal="throughput", horizon=zero + 1024.0)
        plan = SchedulePlan(tuple(job.name for job in jobs), np.zeros(len(jobs), dtype=int), start)
        assert (verify(problem, plan).objective == (0.0 if kind == "horizon" else None)) == (
            fine == (kind == "horizon")
        ), share


@pytest.mark.parametrize("name", ["lists", "starts", "cpsat"])
@pytest.mark.parametrize("fine", [True, False])
def test_slack_goes_with_the_option(name: str, fine: bool) -> None:
    """A deadline is missed by a billionth of what the job runs at its degree, not at another of its degrees."""
    # beside b job a runs its 1000 s on one GPU, and may be 1e-6 s late; after b its 10 s on both, and may be 1e-8 late
    a = MoldableJob("a", (1, 2), (1000.0, 10.0), deadline=1000.0 - 5e-7 if fine else 1000.0)
    b = replace(a, name="b", degrees=(1,), durations=(1000.0,))
    if not fine:
        b = MoldableJob("b", (2,), (990.0 + 5e-7,), deadline=990.0 + 5e-7)
    run = Run(ScheduleProblem((a, b), Pool(2)), time_limit=20.0)
    p = SUITE.prepare(run)
    METHODS[name].run(run, p)
    assert (run.plan is not None) == fine or (fine and name == "lists")
    assert run.infeasible == (name == "starts" and not fine)


def test_four_jobs_at_once() -> None:
    """Four jobs of a second at one moment of a Unix clock are too many for one GPU."""
    jobs = tuple(MoldableJob(name, (1,), (1.0,), release=UNIX) for name in "abcd")
    plan = SchedulePlan(tuple("abcd"), np.zeros(4, dtype=int), np.full(4, UNIX))
    assert not verify(ScheduleProblem(jobs, Pool(1)), plan).ok


@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct", "makespan"])
@pytest.mark.parametrize("name", ["lists", "local_search", "starts", "cpsat"])
def test_methods_on_any_clock(name: str, goal: str) -> None:
    """A method finds the same plan with the same proof at a Unix time: the gap does not count the years before."""
    problem = moldable(9, nodes=1, gpus=8, load=2.0, seed=4, goal=goal)
    runs = []
    for zero in (0.0, UNIX):
        run = Run(moved(problem, zero), time_limit=20.0)
        p = SUITE.prepare(run)
        if METHODS[name].suits(p):
            METHODS[name].run(run, p)
        runs.append(run)
    near, far = runs
    assert near.plan is not None and near.gap is not None
    assert np.array_equal(near.plan.degree, far.plan.degree)
    assert np.array_equal(near.plan.start + UNIX, far.plan.start)
    assert far.objective - far.zero == pytest.approx(near.objective, rel=1e-9)
    assert far.gap == pytest.approx(near.gap, abs=1e-7)


def test_gap_does_not_count_the_years() -> None:
    """A plan of seven jobs in reverse order is not proved optimal because 1970 was long ago."""
    jobs = tuple(MoldableJob(f"j{i}", (1,), (1000.0 * (1 + i),), release=UNIX) for i in range(7))
    problem = ScheduleProblem(jobs, Pool(1))
    start, now = np.zeros(7), UNIX
    for j in reversed(range(7)):
        start[j], now = now, now + jobs[j].durations[0]
    worst = SchedulePlan(tuple(job.name for job in jobs), np.zeros(7, dtype=int), start)
    result = solve(problem, time_limit=20.0, workers=1, method="starts", initial=worst)
    assert result.objective == pytest.approx(result.zero + 84_000.0) and result.status == "OPTIMAL"


def test_optional_jobs_on_a_late_clock() -> None:
    """What is worth less than the seconds before its release is left out, and what is worth more runs."""
    jobs = (
        MoldableJob("cheap", (1,), (1.0,), release=UNIX, value=5.0),
        MoldableJob("dear", (1,), (1.0,), release=UNIX, value=1e10),
        MoldableJob("must", (1,), (2.0,), release=UNIX),
    )
    for name in ("starts", "cpsat"):
        run = Run(ScheduleProblem(jobs, Pool(1)), time_limit=20.0)
        METHODS[name].run(run, SUITE.prepare(run))
        assert run.plan.degree.tolist() == [-1, 0, 0]
        assert run.objective == 2 * UNIX + 1 + 3 + 5 and run.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("goal", ["mean_jct", "weighted_completion", "makespan"])
@pytest.mark.parametrize("zero", [0.0, UNIX])
def test_what_the_verifier_lets_pass_is_less_than_the_slack_of_bounds(goal: str, zero: float) -> None:
    """Three runs on one GPU, each as early as the verifier lets it: they gain something, and less than is taken off."""
    jobs = tuple(
        MoldableJob(name, (1,), (seconds,), release=zero) for name, seconds in zip("abc", (3.0, 5.0, 7.0), strict=True)
    )
    problem = ScheduleProblem(jobs, Pool(1), goal)
    p = prepare(problem)

    def value(share: float) -> Fraction:
        """Return the exact goal, above what the clock costs, if each run starts so much of its slack early."""
        ends, at = list[Fraction](), zero
        for job in jobs:
            (seconds,) = job.durations
            at -= share * (1e-9 * seconds + 4 * ulp(at + seconds))
            ends.append(Fraction(at + seconds) - Fraction(zero))
            at += seconds
        return max(ends) if goal == "makespan" else sum(ends) / (3 if goal == "mean_jct" else 1)

    exact = value(0.0)
    assert 0 < exact - value(0.9) < Fraction(p.slack(float(exact)))
    assert p.slack(float(exact)) < 1e-8 * float(exact) + 1e2 * ulp(zero)
