"""Large-neighbourhood search for placement: what it frees, and what it gains."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.generators.gangs import gangs
from gangplan.solvers import Run
from gangplan.solvers.check import check_solver
from gangplan.solvers.placement.build import first
from gangplan.solvers.placement.lns import _neighbourhood
from gangplan.solvers.placement.methods import METHODS
from gangplan.solvers.placement.prepare import Batch


def test_lns_keeps_the_contract() -> None:
    """LNS passes the check that third parties run on theirs."""
    check_solver(METHODS["lns"], "placement", problems=12)


def test_a_gang_is_free_or_not_touched() -> None:
    """The jobs of a neighbourhood are on its nodes and nowhere else, and nobody else is there."""
    problem = gangs(32, nodes=8, load=0.9, seed=2)
    batch = Batch(problem)
    state = first(Run(problem, time_limit=20.0), batch)
    assert state is not None
    rng = np.random.default_rng(0)
    sizes = set()
    for _ in range(50):
        nodes, jobs = _neighbourhood(state, np.ones(32), 6, rng)
        sizes.add(len(nodes))
        assert 0 < len(nodes) <= 6
        assert {n for j in jobs for n in state.rows[j]} <= set(nodes)
        assert {j for n in nodes for j in state.at[n]} <= set(jobs)
    assert len(sizes) > 1 or sizes == {6}


@pytest.mark.parametrize("options", [{}, {"goal": "throughput"}, {"shares": 0.5, "running": 0.3, "apart": 0.2}])
def test_lns_improves_a_plan(options: dict[str, object]) -> None:
    """From a plan that spreads gangs over all nodes it finds a better one, with patterns or without."""
    problem = gangs(24, nodes=6, load=0.8, seed=4, **options)  # type: ignore[arg-type]
    first_plan = solve(problem, time_limit=20.0, workers=1, method="least_interference")
    assert first_plan.objective is not None
    result = solve(problem, time_limit=6.0, workers=1, method="lns", initial=first_plan.plan)
    assert result.objective is not None and result.objective < first_plan.objective * (1 - 1e-6)
