"""As a method the policy ends in time, offers what the verifier takes, and says why where it cannot help."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators.gangs import gangs
from gangplan.learned.placement import method, shipped
from gangplan.learned.placement.method import learned
from gangplan.learned.placement.policy import PlacementPolicy
from gangplan.solvers import Run
from gangplan.solvers.placement.prepare import Batch


@pytest.fixture
def used(policy: PlacementPolicy, monkeypatch: pytest.MonkeyPatch) -> PlacementPolicy:
    """Let the method find the tests' policy."""
    monkeypatch.setattr(shipped, "shipped_policy", lambda: policy)
    monkeypatch.setattr(method, "SAMPLES", 6)
    return policy


def test_it_offers_a_plan_and_better_ones(used: PlacementPolicy) -> None:
    """The trace falls, is by the policy alone, and is the same for the same seed."""
    problem = gangs(jobs=12, racks=2, nodes=4, load=0.9, seed=3)
    traces = []
    for _ in range(2):
        run = Run(problem, time_limit=60, seed=5)
        learned(run, Batch(problem))
        assert run.objective is not None and {x.by for x in run.trace} == {"learned"}
        traces.append([x.objective for x in run.trace])
    assert traces[0] == traces[1] == sorted(traces[0], reverse=True)


@pytest.mark.usefixtures("processor_clock")
def test_it_ends_in_time(used: PlacementPolicy) -> None:
    """A batch that takes seconds is left as soon as the time is up."""
    problem = gangs(jobs=300, racks=20, nodes=10, load=0.9, seed=3)
    batch = Batch(problem)
    used.context(problem)
    run = Run(problem, time_limit=0.2)
    learned(run, batch)
    assert run.stop_reason == "time limit" and run.seconds() < 1.5


def test_scores_that_are_no_numbers_are_noted(used: PlacementPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN scores leave the answer to others, with the reason."""
    monkeypatch.setattr(used.head, "steep", np.nan)
    problem = gangs(jobs=12, racks=2, nodes=4, load=0.9, seed=3)
    run = Run(problem, time_limit=10)
    learned(run, Batch(problem))
    assert run.plan is None and "not finite" in " ".join(run.notes)


def test_missing_weights_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weights there is a note and no plan."""

    def missing() -> PlacementPolicy:
        raise InstanceError("weights", "'placement' is no file")

    monkeypatch.setattr(shipped, "shipped_policy", missing)
    problem = gangs(jobs=3, racks=1, nodes=2, seed=3)
    run = Run(problem, time_limit=10)
    learned(run, Batch(problem))
    assert run.plan is None and "is no file" in " ".join(run.notes)


def test_other_goals_are_left_to_others(used: PlacementPolicy) -> None:
    """The network knows nothing of fragments."""
    problem = gangs(jobs=3, racks=1, nodes=2, seed=3, goal="fragmentation")
    run = Run(problem, time_limit=10)
    learned(run, Batch(problem))
    assert run.plan is None and "slowdown" in run.notes[0]
