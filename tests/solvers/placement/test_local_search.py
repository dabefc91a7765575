"""Where local search begins."""

from __future__ import annotations

import pytest

from gangplan.instances.generators.gangs import gangs
from gangplan.solvers import Run
from gangplan.solvers.placement.methods import METHODS, SUITE
from gangplan.solvers.placement.quick import FIRST_FIT, quick
from gangplan.solvers.placement.ruin_recreate import arrays, engine


def test_a_plan_with_a_gang_on_too_many_nodes_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the arrays of the search do not hold is no beginning, and the plan known stays."""
    monkeypatch.setattr(arrays, "ROWS", 1)
    run = Run(gangs(24, 2, 6, gpus=8, load=0.8, seed=1), time_limit=60.0)
    batch = SUITE.prepare(run)
    quick(run, batch)
    assert engine.RuinRecreate(batch).given.most == 1
    METHODS["local_search"].run(run, batch)
    assert [found.by for found in run.trace] == [FIRST_FIT]
