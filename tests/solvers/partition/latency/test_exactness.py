"""Exact methods against one another and against enumeration."""

from __future__ import annotations

import pytest

from gangplan.instances import verify
from gangplan.solvers import Run
from gangplan.solvers.partition.latency.exact import cpsat
from gangplan.solvers.partition.latency.methods import SUITE
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.tiny import random_latency as random_problem
from tests.seeds import some


def test_cpsat_finds_the_optimum() -> None:
    """With no plan to begin with CP-SAT ends at the optimum by enumeration, or proves that there is none."""
    seeds = some(range(200), 5)
    feasible = 0
    for seed in seeds:
        problem = random_problem(seed)
        best = optimum(problem)
        run = Run(problem, time_limit=60)
        prepared = SUITE.prepare(run)
        if not run.stopped:
            cpsat(run, prepared)
        feasible += best is not None
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=1e-6), seed
            assert run.gap is not None and run.gap <= 1e-6, seed
    assert feasible > len(seeds) / 2


def test_random_problems_bind() -> None:
    """Among random problems there are hosts and none, several accelerators in use, classes, and no plan at all."""
    seen = {"none": 0, "hosts": 0, "no hosts": 0, "calls": 0, "classes": 0}
    seeds = some(range(120), 3)
    for seed in seeds:
        problem = random_problem(seed)
        best = optimum(problem)
        hosts = problem.hosts()
        seen["hosts" if hosts.any() else "no hosts"] += 1
        seen["classes"] += bool((problem.graph.colocation >= 0).any())
        seen["none"] += best is None
        run = Run(problem, time_limit=60)
        prepared = SUITE.prepare(run)
        if best is not None:
            cpsat(run, prepared)
            assert verify(problem, run.plan).ok
            seen["calls"] += len(set(run.plan.device.tolist()) - set(hosts.nonzero()[0].tolist())) > 1
    assert min(seen.values()) >= len(seeds) // 20, seen
