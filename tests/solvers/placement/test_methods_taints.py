"""Taints and the GPU types that a job names, offline: every method keeps to them, and the verifier says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gangplan
from gangplan.instances.documents import dump, load
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.solvers.placement.methods import METHODS

SPEEDS = SpeedModel(("m",), ("A", "B"), np.array([[2.0], [1.0]]), np.ones(1), np.zeros(1), *np.zeros((2, 1, 1)))
FLEET = Fleet.regular(1, 3, 2, gpu_type=("B", "A", "A"), taints={"old": ["node1"]})
PROBLEM = PlacementProblem(FLEET, (GangJob("x", "m", (2,), gpu_types=("A",)),), SPEEDS)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stays_off(method: str) -> None:
    """Of the types that x accepts, node2 alone is not tainted."""
    result = gangplan.solve(PROBLEM, method=method, time_limit=5)
    assert result.plan is not None
    assert [FLEET.names[node] for node in result.plan.node] == ["node2"]


def test_the_verifier_says_so() -> None:
    """A plan that was right where x tolerated the taint, or accepted any type, is wrong where it does not."""
    easy = replace(PROBLEM, jobs=(replace(PROBLEM.jobs[0], tolerates=("old",)),))
    plan = gangplan.solve(easy, time_limit=5).plan
    assert plan is not None
    plan = replace(plan, node=np.array([1], dtype=np.int32), instance=None)
    assert gangplan.verify(easy, plan).ok
    assert "taint: job x is on node1" in str(gangplan.verify(PROBLEM, plan))
    plan = replace(plan, node=np.array([0], dtype=np.int32))
    assert "cannot run on the GPUs of node0" in str(gangplan.verify(PROBLEM, plan))
    again = load(dump(PROBLEM))
    assert again.jobs == PROBLEM.jobs and (again.fleet.tainted == FLEET.tainted).all()
