"""PipeDream's recurrence."""

from __future__ import annotations

import pytest

import gangplan
from gangplan import Run
from gangplan.hybrid.bench.peers.pipedream import pipedream


def test_a_small_network() -> None:
    """The recurrence comes to what gangplan proves, and refuses what it was not made for."""
    problem = gangplan.with_objective(gangplan.generate("vgg", depth=11, devices=3), "stages")
    run = Run(problem, time_limit=20)
    pipedream(run)
    assert run.objective == pytest.approx(gangplan.solve(problem, time_limit=20).objective, rel=1e-9)
    with pytest.raises(NotImplementedError, match="recurrence"):
        pipedream(Run(gangplan.generate("vgg", depth=11, devices=3), time_limit=1))
