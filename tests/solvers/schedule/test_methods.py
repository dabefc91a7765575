"""Every method for schedules agrees with the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import dump, load, solve
from gangplan.instances import verify
from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.schedule.enumeration import optimum, random_problem
from gangplan.solvers.schedule.methods import METHODS, SUITE
from gangplan.solvers.schedule.prepare import prepare

from ...seeds import examples

EXACT = [name for name, method in METHODS.items() if method.exact]


def finished(name: str, problem: ScheduleProblem, limit: float = 60.0) -> Run:
    """Return the run of one method."""
    run = Run(problem, time_limit=limit)
    p = SUITE.prepare(run)
    if not run.infeasible and METHODS[name].suits(p):
        METHODS[name].run(run, p)
    return run


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_exact_methods_agree(first: int) -> None:
    """The MILP, CP-SAT and enumeration find one optimum on a hundred small problems."""
    for seed in range(first, first + 25):
        problem = random_problem(1000 + seed)
        best = optimum(problem)
        for name in EXACT:
            run = finished(name, problem)
            assert run.infeasible == (best is None), (seed, name)
            if best is not None:
                assert run.objective == pytest.approx(best, rel=1e-6, abs=1e-9), (seed, name)
                assert run.gap is not None and run.gap <= 1e-6, (seed, name)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6))
def test_bounds_and_plans(seed: int) -> None:
    """On problems of up to nine jobs no bound of any method is above the best plan of any other."""
    problem = random_problem(seed, jobs=9)
    runs = [finished(name, problem, 20.0) for name in ("lists", "local_search", "starts", "cpsat")]
    plans = [run.objective for run in runs if run.objective is not None]
    bounds = [run.bound for run in runs if run.bound is not None]
    assert not any("withdrawn" in note or "refused" in note for run in runs for note in run.notes)
    if plans and bounds:
        assert max(bounds) <= min(plans) * (1 + 1e-6) + 1e-12
    if plans:
        assert not any(run.infeasible for run in runs)


@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct"])
def test_starts_prove_what_cpsat_proves(goal: str) -> None:
    """Where GPUs are counted, the search over starts ends with a proof, and CP-SAT has the same optimum."""
    for seed in range(6):
        problem = moldable(7, nodes=1, gpus=8, load=1.5, seed=seed, goal=goal, optional=0.3, fraction=2.0 * (seed % 2))
        ours, theirs = finished("starts", problem), finished("cpsat", problem)
        assert ours.stop_reason == theirs.stop_reason == "claimed" or ours.infeasible == theirs.infeasible is True
        assert ours.objective == pytest.approx(theirs.objective)


def test_menu_is_used() -> None:
    """Two jobs of work 4 on two GPUs, 4 s on one and 3 s on both: side by side 8, one after the other 9."""
    jobs = tuple(MoldableJob(name, (1, 2), (4.0, 3.0)) for name in "xy")
    result = solve(ScheduleProblem(jobs, Pool(2)), time_limit=20, workers=1)
    assert (result.status, result.objective) == ("OPTIMAL", 8.0)
    alone = solve(ScheduleProblem(jobs[:1], Pool(2)), time_limit=20, workers=1)
    assert alone.objective == 3.0


def test_waiting_pays() -> None:
    """A heavy short gang comes at 1, and a long light job waits for it: 12 + 100 * 2 is less than 10 + 100 * 11."""
    jobs = (MoldableJob("light", (2,), (10.0,)), MoldableJob("heavy", (2,), (1.0,), release=1.0, weight=100.0))
    for name in ("starts", "cpsat", "milp"):
        run = finished(name, ScheduleProblem(jobs, Pool(2)))
        assert run.objective == pytest.approx(12 + 200), name


def test_the_milp_counts_what_it_holds() -> None:
    """Runs of many ticks that may start at many are no model for the MILP, few of either are."""
    for ticks, small in ((9_000, False), (90, True)):
        jobs = (
            MoldableJob("x", (1,), (float(ticks),)),
            MoldableJob("y", (1,), (float(ticks),)),
            MoldableJob("z", (1,), (1.0,)),
        )
        assert METHODS["milp"].suits(prepare(ScheduleProblem(jobs, Pool(1)))) == small


def test_nodes_bind() -> None:
    """Three jobs of two GPUs fit six counted GPUs at once, but two nodes of three hold only two of them."""
    jobs = tuple(MoldableJob(name, (2,), (5.0,)) for name in "xyz")
    for capacity, value in ((Pool(6), 15.0), (NodePool(2, 3), 20.0)):
        result = solve(ScheduleProblem(jobs, capacity), time_limit=20, workers=1)
        assert (result.status, result.objective) == ("OPTIMAL", value)


def test_no_schedule() -> None:
    """Two jobs that are due together and fit only one after the other: both, and the GPUs, are the reason."""
    jobs = tuple(MoldableJob(name, (2,), (5.0,), deadline=8.0) for name in "xy")
    jobs += (MoldableJob("z", (1,), (1.0,)),)
    result = solve(ScheduleProblem(jobs, Pool(2)), time_limit=20, workers=1)
    assert result.status == "INFEASIBLE"
    assert len(result.conflict) == 5 and not any("job z" in words for words in result.conflict)


@pytest.mark.parametrize("capacity", ["pool", "nodes", "ramp"])
@pytest.mark.parametrize("goal", ["weighted_completion", "mean_jct", "makespan", "blocked", "throughput"])
def test_solve(capacity: str, goal: str) -> None:
    """Every goal on every capacity is solved with a bound, and the plan survives JSON."""
    problem = moldable(8, nodes=2, gpus=4, seed=2, capacity=capacity, goal=goal, fraction=1.5 * (goal == "blocked"))
    result = solve(problem, time_limit=0.5, workers=1)
    assert result.plan is not None and result.bound is not None
    assert verify(problem, load(dump(result.plan))).objective == result.objective


def test_initial_plan() -> None:
    """Local search starts from the plan it is given."""
    problem = moldable(12, seed=1, load=3.0)
    first = solve(problem, time_limit=20.0, workers=1, method="lists")
    assert first.plan is not None and first.objective is not None
    second = solve(problem, time_limit=0.5, workers=1, method="local_search", initial=first.plan)
    assert second.objective is not None and second.trace[0].by == "initial"
    assert second.objective <= first.objective


@pytest.mark.parametrize("seed", range(3))
def test_twenty_staggered(seed: int) -> None:
    """Twenty jobs that arrive one by one are proved optimal in seconds."""
    result = solve(moldable(20, seed=seed, load=1.0), time_limit=30, workers=1)
    assert result.status == "OPTIMAL"


def test_unknown_method() -> None:
    """A method of another problem is refused."""
    with pytest.raises(ValueError, match="method: 'heft' is not one of auto, dual, lists"):
        solve(moldable(3), time_limit=1, method="heft")


def test_callbacks_stop() -> None:
    """A callback ends the solve at the first plan."""
    seen: list[Any] = []
    result = solve(
        moldable(30, seed=0, load=0.0),
        time_limit=30,
        callbacks=[lambda run: bool(seen.append(1)) or run.plan is not None],
    )
    assert result.stop_reason == "callback" and len(result.trace) == 1
