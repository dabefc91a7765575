"""The contract of every method, and exact methods against one another and against enumeration."""

from __future__ import annotations

import pytest

from gangplan.instances import verify
from gangplan.solvers import Run
from gangplan.solvers.check import check_solver
from gangplan.solvers.partition.latency.cpsat import cpsat
from gangplan.solvers.partition.latency.enumeration import optimum
from gangplan.solvers.partition.latency.methods import METHODS, SUITE
from gangplan.solvers.partition.latency.milp import milp
from gangplan.solvers.partition.latency.random_problem import random_problem


@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_the_contract(name: str) -> None:
    """Each registered method passes the check that third parties run on theirs."""
    check_solver(METHODS[name], "latency")


SOLVERS = {"cpsat": cpsat, "milp": milp}


@pytest.mark.parametrize(("name", "problems"), [("cpsat", 200), ("milp", 120)])
def test_solver_finds_the_optimum(name: str, problems: int) -> None:
    """With no plan to begin with each exact method ends at the optimum by enumeration, or proves that there is none."""
    feasible = 0
    for seed in range(problems):
        problem = random_problem(seed)
        best = optimum(problem)
        run = Run(problem, time_limit=60)
        prepared = SUITE.prepare(run)
        if not run.stopped:
            SOLVERS[name](run, prepared)
        feasible += best is not None
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=1e-6), seed
            assert run.gap is not None and run.gap <= 1e-6, seed
    assert feasible > problems / 2


def test_cpsat_agrees_with_milp_on_larger_problems() -> None:
    """Where enumeration is too slow, CP-SAT and HiGHS end at the same value."""
    compared = 0
    for seed in range(25):
        problem = random_problem(seed, ops=10, devices=4)
        runs = []
        for solver in SOLVERS.values():
            run = Run(problem, time_limit=60)
            prepared = SUITE.prepare(run)
            if not run.stopped:
                solver(run, prepared)
            runs.append(run)
        assert runs[0].infeasible == runs[1].infeasible, seed
        if not runs[0].infeasible:
            assert runs[0].objective == pytest.approx(runs[1].objective, rel=1e-6), seed
            compared += 1
    assert compared > 10


def test_random_problems_bind() -> None:
    """Among random problems there are hosts and none, several accelerators in use, classes, and no plan at all."""
    seen = {"none": 0, "hosts": 0, "no hosts": 0, "calls": 0, "classes": 0}
    for seed in range(120):
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
    assert min(seen.values()) >= 10, seen
