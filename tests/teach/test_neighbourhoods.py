"""Ruin and recreate step by step is the library's search, round by round."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gangplan import teach
from gangplan.instances import InstanceError, verify
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.placement.build import order_of
from gangplan.solvers.placement.build import start as running_jobs
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.ruin_recreate.engine import RuinRecreate


def test_the_trap_is_left() -> None:
    """Insertion is caught in the trap, and the search gets out of it."""
    lesson = teach.greedy_trap()
    steps = list(teach.ruin_and_recreate(lesson.problem))
    assert steps[0].objective == pytest.approx(7.0)
    assert steps[-1].objective == pytest.approx(lesson.optimum) and "the best so far" in steps[-1].text
    assert all(verify(lesson.problem, s.plan).objective == s.objective for s in steps)


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_rounds_of_the_search(seed: int) -> None:
    """The best of the steps is what the compiled search finds in as many rounds, each drawn by itself."""
    problem = suite("placement").random_problem(seed, "")
    batch = PreparedBatch(problem)
    engine = RuinRecreate(batch)
    engine._step = 1
    running = running_jobs(batch).rows
    rows, cost = engine.insert(running, [j for j in order_of(batch) if not running[j]], 5)
    run = Run(problem, time_limit=60)
    suite("placement").prepare(run)
    if run.infeasible or engine.failed is not None:
        return
    rows, wanted = engine.improve(rows, 30, 5)
    steps = list(teach.ruin_and_recreate(problem, rounds=30, seed=5))
    assert min(s.objective for s in steps if s.objective is not None) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert cost >= wanted


def test_each_step_says_what_it_did() -> None:
    """A step that is undone leaves the plan as it was, and one that is kept costs what it says."""
    lesson = teach.greedy_trap()
    steps = list(teach.ruin_and_recreate(lesson.problem, seed=3, rounds=200))
    assert len(steps) > 3
    for before, step in pairwise(steps):
        if step.text.endswith("undone"):
            assert step.objective == before.objective
        else:
            assert f"costs {step.objective:.6g}" in step.text
    kinds = {step.text.rsplit(": ", 1)[-1] for step in steps[1:]}
    assert {"undone", "the best so far"} <= kinds


def test_a_start_is_taken() -> None:
    """The search begins with a plan that is given, and refuses one for other jobs."""
    lesson = teach.greedy_trap()
    first, *_ = teach.ruin_and_recreate(lesson.problem)
    again, *_ = teach.ruin_and_recreate(lesson.problem, start=first.plan, rounds=0)
    assert again.objective == first.objective and again.number == 0
    other = list(teach.ruin_and_recreate(lesson.problem, rounds=0))
    assert len(other) == 1
    with pytest.raises(InstanceError, match="rounds: -1 is negative"):
        teach.ruin_and_recreate(lesson.problem, rounds=-1)
    with pytest.raises(InstanceError, match="problem: ruin and recreate is shown on a PlacementProblem"):
        teach.ruin_and_recreate(teach.two_jobs().problem)  # type: ignore[arg-type]
