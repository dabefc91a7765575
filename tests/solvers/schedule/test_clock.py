"""Where the clock starts, how fine it is and how large the figures are: proofs and plans are right all the same."""

from __future__ import annotations

import heapq
from dataclasses import replace
from fractions import Fraction
from math import ulp
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.generators.moldable import moldable
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, SchedulePlan, ScheduleProblem
from gangplan.instances.verify import clock_cost, verify
from gangplan.instances.workload import Workload
from gangplan.solvers import Run
from gangplan.solvers.schedule import bounds
from gangplan.solvers.schedule import local_search as annealing
from gangplan.solvers.schedule.bounds import area, squashed
from gangplan.solvers.schedule.clairvoyant import mean_jct_bound
from gangplan.solvers.schedule.decode import decoding
from gangplan.solvers.schedule.first_come import first_come
from gangplan.solvers.schedule.grain import Scale
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
@pytest.mark.parametrize("kind", ["release", "deadline", "capacity"])
def test_slack_of_the_verifier(zero: float, kind: str) -> None:
    """A time may be off by a billionth of what it is about and four last places, and by no more, on any clock."""
    for share, fine in ((0.5, True), (3.0, False)):
        off = share * (1e-9 * 1024.0 + 4 * ulp(zero + 2048.0))
        due = zero + 1024.0 if kind == "deadline" else None
        jobs = tuple(MoldableJob(name, (1,), (1024.0,), release=zero, deadline=due) for name in "ab")
        start = np.array([zero, zero + 1024.0])
        start[0] += off if kind == "deadline" else 0.0
        start[1] -= off if kind == "capacity" else 0.0
        if kind != "capacity":
            jobs, start = jobs[:1], start[:1]
        if kind == "release":
            jobs = (replace(jobs[0], release=zero + off),)
        problem = ScheduleProblem(jobs, Pool(1))
        plan = SchedulePlan(tuple(job.name for job in jobs), np.zeros(len(jobs), dtype=int), start)
        assert verify(problem, plan).ok == fine, share


def test_four_jobs_at_once() -> None:
    """Four jobs of a second at one moment of a Unix clock are too many for one GPU."""
    jobs = tuple(MoldableJob(name, (1,), (1.0,), release=UNIX) for name in "abcd")
    plan = SchedulePlan(tuple("abcd"), np.zeros(4, dtype=int), np.full(4, UNIX))
    assert not verify(ScheduleProblem(jobs, Pool(1)), plan).ok


@pytest.mark.parametrize(
    ("zero", "seconds", "gpus"), [(UNIX, 1e-7, 1), (600.0, 1e-3, 1), (3600.0, 1e-3, 1000), (1e9, 1e-9, 1)]
)
def test_squashing_ends(zero: float, seconds: float, gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn ends a job or begins one, however small the work beside the time; and the means keep their digits."""
    pops: list[int] = []
    pop = heapq.heappop

    def counted(heap: Any) -> Any:
        pops.append(1)
        assert len(pops) <= 40, "the loop does not get on"
        return pop(heap)

    monkeypatch.setattr(bounds.heapq, "heappop", counted)
    n = 10
    work = [seconds / gpus] * n
    ended, busy = bounds.flows([zero] * n, work, [1.0] * n, list(range(n)), False)
    assert ended == pytest.approx(sum(range(1, n + 1)) * seconds / gpus)
    assert busy == pytest.approx(sum(k + 0.5 for k in range(n)) * seconds / gpus)


def test_clairvoyant_on_any_clock() -> None:
    """The bound of a trace is the same at a Unix time, to the places that time has."""
    rng = np.random.default_rng(0)
    submit, duration, gpus = np.cumsum(rng.random(200)), 0.001 * rng.random(200), rng.integers(1, 5, 200)
    names = tuple(map(str, range(200)))
    near, far = (mean_jct_bound(Workload(names, submit + zero, gpus, duration), 8) for zero in (0.0, UNIX))
    assert far == pytest.approx(near, abs=1e-6)
    same = (mean_jct_bound(Workload(names, np.full(200, zero), gpus, duration), 8) for zero in (0.0, UNIX))
    assert next(same) == pytest.approx(next(same), abs=1e-6)


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


def test_costs_do_not_floor_to_nothing() -> None:
    """Beside prices of a thousand million the seconds of broken lengths still count, and are rounded by little."""
    jobs = tuple(
        MoldableJob(f"j{i}", (1,), (4.0 + 0.1234567 * i * i,), release=0.71 * i, value=1e9 if i % 2 else None)
        for i in range(5)
    )
    p = prepare(ScheduleProblem(jobs, Pool(1)))
    scale = Scale(p, most=60.0)
    assert min(scale.slope) > 0
    assert scale.error < 1e-4
    run = Run(p.problem, time_limit=60.0)
    METHODS["cpsat"].run(run, SUITE.prepare(run))
    assert run.stop_reason == "proved"
    # so large a price cannot be told in the unit of the times: it is said what that may cost
    assert Scale(p).error > 1.0


def test_broken_times_are_rounded_down() -> None:
    """Three runs of 3.9999995 ticks and a deadline at their end: none is rounded up, so CP-SAT has the plan."""
    tick = float(np.pi)
    jobs = tuple(
        MoldableJob(n, (1,), (s,), deadline=float(np.sum([tick, np.e, 2.0])))
        for n, s in zip("abc", (tick, np.e, 2.0), strict=True)
    )
    run = Run(ScheduleProblem(jobs, Pool(1)), time_limit=20.0)
    METHODS["cpsat"].run(run, SUITE.prepare(run))
    assert not run.infeasible and run.plan is not None
    scale = Scale(prepare(run.problem))
    assert not scale.whole and all(
        scale.down(x) * scale.tick <= x for x in np.random.default_rng(0).random(1000).tolist()
    )


@pytest.mark.parametrize("capacity", ["pool", "nodes", "ramp"])
@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct", "makespan", "blocked", "throughput"])
def test_a_plan_whatever_the_limit(capacity: str, goal: str) -> None:
    """With 20 ms for 300 jobs, less than many a method needs to begin, there is a verified plan and a bound."""
    problem = moldable(300, nodes=4, gpus=4, seed=3, capacity=capacity, goal=goal, fraction=2.0 * (goal == "blocked"))
    result = solve(problem, time_limit=0.02, workers=1)
    assert result.plan is not None and verify(problem, result.plan).ok


def test_first_come_passes_the_verifier() -> None:
    """On tiny problems where every constraint may bind, the first plan breaks none; where there is none it says so."""
    found = 0
    for seed in range(200):
        problem = SUITE.random_problem(seed, "")
        p = prepare(problem)
        made = first_come(p)
        if made is not None:
            assert verify(problem, p.plan(*made)).ok, seed
            found += 1
    assert found > 100


def test_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 3,000 jobs annealing decodes few lists between two looks, and a list itself is decoded in parts."""
    problem = moldable(3000, load=1.0, seed=0)
    p = prepare(problem)
    parts = list(decoding(p, np.arange(p.n), np.full(p.n, -2)))
    assert len(parts) > 1 and all(x == np.inf for x in parts[:-1]) and np.isfinite(parts[-1])
    sizes: list[int] = []

    def anneal(*given: Any) -> Any:
        sizes.append(len(given[4]))
        return given[1], given[2]

    monkeypatch.setattr(annealing, "_anneal", anneal)
    run = Run(problem, time_limit=60.0, callbacks=(lambda run: None,))
    monkeypatch.setattr(Run, "stopped", property(lambda self: len(sizes) >= 3))
    METHODS["local_search"].run(run, p)
    assert len(sizes) == 3 and max(sizes) * p.n**2 <= 20_000_000


def test_bounds_in_closed_form() -> None:
    """Three jobs on one GPU by hand: areas after each release, and mean busy times with half of each run."""
    jobs = tuple(
        MoldableJob(n, (1,), (s,), release=r) for n, s, r in (("a", 4.0, 0.0), ("b", 2.0, 1.0), ("c", 3.0, 9.0))
    )
    assert area(prepare(ScheduleProblem(jobs, Pool(1), "makespan"))) == 12.0
    # a: 0..1 and 3..6, b: 1..3, c: 9..12; means 0.125 + 3.375, 2, 10.5
    assert squashed(prepare(ScheduleProblem(jobs, Pool(1)))) == pytest.approx(3.5 + 2 + 2 + 1 + 10.5 + 1.5)
    assert squashed(prepare(ScheduleProblem(jobs, NodePool(1, 1), "mean_jct"))) == pytest.approx((20.5 - 10) / 3)
