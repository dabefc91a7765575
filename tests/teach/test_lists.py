"""List scheduling step by step is the library's list scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import teach
from gangplan.instances import InstanceError, verify
from gangplan.instances.schedule import GOALS
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.list_scheduler import ListState, build
from gangplan.solvers.partition.step.settings import HEFT, prices_of
from gangplan.solvers.partition.step.timing import Workroom
from gangplan.solvers.schedule.classic import ORDERS, keys_of
from gangplan.solvers.schedule.decode import Decoder


@pytest.mark.parametrize("seed", range(2 * 3 * len(GOALS)))
def test_jobs_are_those_of_the_decoder(seed: int) -> None:
    """Of every goal and kind of cluster the last step costs what the decoder says, and each plan before is feasible."""
    problem = suite("schedule").random_problem(seed, "")
    run = Run(problem, time_limit=60)
    prepared = suite("schedule").prepare(run)
    if run.infeasible:
        with pytest.raises(InstanceError, match="problem: there is no plan"):
            teach.list_scheduling(problem)
        return
    order = list(ORDERS)[seed % len(ORDERS)]
    wanted = Decoder(prepared).decode(np.argsort(keys_of(prepared, order, prepared.seconds), kind="stable"))
    steps = list(teach.list_scheduling(problem, order))
    assert [s.number for s in steps] == list(range(len(steps)))
    if wanted == np.inf:
        assert steps[-1].plan is None and "this list fails" in steps[-1].text
        return
    assert len(steps) == 1 + len(problem.jobs) and steps[-1].problem is problem
    assert steps[-1].objective == pytest.approx(wanted + run.zero, rel=1e-6, abs=1e-9)
    placed = [{i for i, start in enumerate(s.plan.degree) if start >= 0} for s in steps]
    for step, before, after in zip(steps[1:], placed, placed[1:], strict=False):
        assert before <= after and len(after - before) <= 1
        assert verify(step.problem, step.plan).objective == step.objective


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_worst_case_of_graham(m: int) -> None:
    """In the order given list scheduling takes 2 - 1/m times the optimum, with the long job first it is optimal."""
    lesson = teach.graham(m)
    names = [job.name for job in lesson.problem.jobs]
    *_, given = teach.list_scheduling(lesson.problem)
    *_, longest = teach.list_scheduling(lesson.problem, names[::-1])
    assert given.objective == pytest.approx((2 - 1 / m) * lesson.optimum)
    assert longest.objective == lesson.optimum
    cost = teach.list_cost(lesson.problem)
    assert (cost(names), cost(names[::-1])) == (given.objective, longest.objective)
    with pytest.raises(InstanceError, match="order: 'short0' is there 0 times, not once"):
        cost(names[1:])


@pytest.mark.parametrize("seed", range(24))
def test_ops_are_those_of_heft(seed: int) -> None:
    """The last step is HEFT's plan, unless memory ends it; before it each part of the graph has a feasible plan."""
    problem = suite("step").random_problem(seed, "")
    run = Run(problem, time_limit=60)
    prepared = suite("step").prepare(run)
    if run.infeasible:
        return
    room = Workroom(prepared)
    fits = build(ListState(room, prepared.arrays, prices_of(prepared.basis, HEFT)), False)
    steps = list(teach.list_scheduling(problem))
    assert all(verify(s.problem, s.plan).objective == s.objective for s in steps if s.plan is not None)
    if not fits:
        assert steps[-1].plan is None and "No device has memory left" in steps[-1].text
        return
    assert len(steps) == 1 + problem.graph.n_ops and steps[-1].problem is problem
    assert np.array_equal(room.start, steps[-1].plan.start)


def test_heft_is_the_last_step() -> None:
    """Where HEFT beats one device, its plan is that of the last step."""
    lesson = teach.fork()
    run = Run(lesson.problem, time_limit=60)
    suite("step").methods["heft"].run(run, suite("step").prepare(run))
    *_, last = teach.list_scheduling(lesson.problem)
    assert last.objective == run.objective == lesson.optimum


@pytest.mark.parametrize(
    ("problem", "order", "words"),
    [
        (teach.two_jobs, "longest", "order: 'longest' is not one of"),
        (teach.two_jobs, ["long"], "order: 'short' is there 0 times, not once"),
        (teach.two_jobs, ["long", "short", "long"], "order: 'long' is there 2 times, not once"),
        (teach.two_jobs, ["long", "brief"], "order: 'brief' is no job of the problem"),
        (teach.fork, "fifo", "order: 'fifo' is for jobs"),
        (teach.one_call, "given", "problem: list scheduling is shown on a ScheduleProblem or StepProblem"),
    ],
)
def test_bad_orders(problem: Any, order: Any, words: str) -> None:
    """An order or a problem that has no list is refused by name, before the first step."""
    with pytest.raises(InstanceError, match=words):
        teach.list_scheduling(problem().problem, order)
