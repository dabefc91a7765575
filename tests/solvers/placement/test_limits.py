"""What a batch of any size comes to where there is hardly any time."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from gangplan import solve
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import rate
from gangplan.solvers import Run
from gangplan.solvers.placement import methods
from gangplan.solvers.placement.bounds import impossible
from gangplan.solvers.placement.methods import SUITE
from gangplan.solvers.placement.pattern_bound import bounds
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.state import PlacementState

MANY: dict[str, Any] = {"menus": 0.3, "selectors": 0.2, "spread": 0.2, "apart": 0.1, "whole_nodes": 0.1, "running": 0.2}


@pytest.mark.parametrize(("jobs", "racks", "nodes"), [(16, 2, 8), (500, 16, 16), (1500, 20, 75)])
def test_a_plan_at_any_limit(jobs: int, racks: int, nodes: int) -> None:
    """A limit of a moment brings a plan of a large batch as of a small one, and not much later."""
    problem = gangs(jobs=jobs, racks=racks, nodes=nodes, load=0.8, **MANY)
    solve(gangs(jobs=4, racks=1, nodes=2), time_limit=0.1)  # what is imported once is no part of it
    before = time.process_time()
    result = solve(problem, time_limit=0.02, workers=1)
    assert result.plan is not None
    assert time.process_time() - before < 10.0


def test_a_plan_without_any_time() -> None:
    """Preparing alone offers a plan where no policy could be done in time, and none where there is time."""
    problem = gangs(jobs=40, racks=2, nodes=8, load=0.8, **MANY)
    late, early = Run(problem, time_limit=0.0), Run(problem, time_limit=1000.0)
    SUITE.prepare(late)
    SUITE.prepare(early)
    assert late.plan is not None and late.trace[0].by == "first_fit"
    assert early.plan is None and early.bound is not None


@pytest.mark.parametrize("inserted", [False, True])
def test_insertion_makes_the_first_plan(monkeypatch: pytest.MonkeyPatch, inserted: bool) -> None:
    """On a large fleet first fit comes at once where nothing is inserted, and else only if no method has found a plan.

    First fit is 20% worse on 1,000 nodes than the insertion that it would take the time of.
    """
    monkeypatch.setattr(methods, "INSERTED", 256 if inserted else 255)
    run = Run(gangs(jobs=400, racks=16, nodes=16, load=0.8), time_limit=1000.0)
    batch = SUITE.prepare(run)
    assert (run.plan is None) == inserted
    SUITE.draft(run, batch)
    assert run.plan is not None and [found.by for found in run.trace] == ["first_fit"]


def test_a_draft_proves_what_preparing_had_no_time_for() -> None:
    """A batch that fits nowhere is proved so, in a hurry by the draft."""
    problem = gangs(jobs=4, racks=1, nodes=2, gpus=1, load=0.8)
    larger = tuple(replace(job, workers=(3,)) for job in problem.jobs)
    run = Run(replace(problem, jobs=larger), time_limit=0.0)
    batch = SUITE.prepare(run)
    assert not run.infeasible and run.plan is None
    SUITE.draft(run, batch)
    assert run.infeasible


def test_a_bound_stops_when_told() -> None:
    """The bound by patterns is content with what it has proved once the run has stopped."""
    problem = gangs(jobs=200, racks=4, nodes=16, load=0.9)
    run = Run(problem, time_limit=60.0, callbacks=(lambda _: True,))
    bounds(run, PreparedBatch(problem))
    assert run.stop_reason == "callback" and run.bound is not None


def test_equal_jobs_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to prepare a batch goes by its kinds of jobs, not by its jobs."""
    calls = {"room": 0, "alone": 0}
    room, alone = PlacementState.room, rate._alone

    def counted_room(self: PlacementState, j: int) -> Any:
        calls["room"] += 1
        return room(self, j)

    def counted_alone(*arguments: Any, **named: Any) -> float:
        calls["alone"] += 1
        return alone(*arguments, **named)

    monkeypatch.setattr(PlacementState, "room", counted_room)
    monkeypatch.setattr(rate, "_alone", counted_alone)
    problem = gangs(jobs=600, racks=10, nodes=60, load=0.2, collective="ring")
    kinds = {(job.model, job.worker, job.workers) for job in problem.jobs}
    assert impossible(PreparedBatch(problem)) is None
    assert calls["room"] <= len(kinds) < 200 and calls["alone"] <= len(kinds)
