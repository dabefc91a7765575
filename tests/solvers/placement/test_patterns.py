"""Patterns of nodes: those that a plan may have, servers on nodes of their own, and what must be proved."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan import solve
from gangplan.instances.generators.gangs import gangs
from gangplan.solvers import Run
from gangplan.solvers.placement import patterns as module
from gangplan.solvers.placement.gpu_assignment import rows_of
from gangplan.solvers.placement.local_search import local_search
from gangplan.solvers.placement.methods import SUITE


@pytest.mark.parametrize("seed", range(5))
def test_patterns_within_a_margin_have_those_of_cheap_plans(seed: int) -> None:
    """Each pattern of a plan is among those that are within what the plan costs above the bound of the prices."""
    problem = gangs(6, racks=1, nodes=4, gpus=4, load=0.9, seed=seed)
    run = Run(problem, time_limit=20.0)
    batch = SUITE.prepare(run)
    local_search(run, batch, 200)
    own = Run(problem, time_limit=20.0)
    relaxation = module.PatternBound(own, batch)
    relaxation.solve()
    known = module.NodePatterns(own, batch, relaxation.prices())
    assert known.bound is not None and run.objective is not None and known.bound <= run.objective + 1e-6
    found = known.within(run.objective - known.bound + 1e-6, 100_000)
    assert found is not None and {*known.held(rows_of(batch, run.plan))} <= {*found}
    assert known.within(run.objective - known.bound + 1e-6, 1) is None


def test_servers_apart_from_workers_find_idle_nics() -> None:
    """A gang of 32 workers and 8 servers has the servers on NICs of their own where that is best."""
    result = solve(gangs(16, load=0.6 + 0.35 * 2 / 19, seed=2), time_limit=30.0, workers=2)
    assert result.status == "OPTIMAL"
    assert result.objective == pytest.approx(31.7501, abs=1e-4)  # as found with a pattern for each choice of servers


@pytest.mark.parametrize("load", [0.8, 0.95])
def test_a_full_fleet_is_within_two_percent(load: float) -> None:
    """64 jobs on 32 nodes of 8 GPUs are within 2% of the bound in a minute."""
    result = solve(gangs(64, nodes=16, load=load, seed=1), time_limit=60.0, workers=2, gap=0.02)
    assert result.gap is not None and result.gap <= 0.02


def test_the_choice_takes_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof among a thousand patterns takes CP-SAT few steps and four models, none of them nearly the last."""
    solvers: list[Any] = []
    make = module.cpsat_solver

    def kept(run: Run) -> Any:
        solvers.append(make(run))
        return solvers[-1]

    monkeypatch.setattr(module, "cpsat_solver", kept)
    run = Run(gangs(jobs=16, racks=2, nodes=8, load=0.8, seed=2005), time_limit=200, workers=2)
    batch = SUITE.prepare(run)
    local_search(run, batch, 2000)
    module.patterns(run, batch)
    assert run.stop_reason == "claimed" and len(solvers) == 4
    assert sum(solver.response_proto.deterministic_time for solver in solvers) < 4
