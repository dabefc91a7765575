"""METIS's partitions as plans, where pymetis is installed."""

from __future__ import annotations

import pytest

import gangplan
from gangplan import Run
from gangplan.solvers.method import suite

metis = pytest.importorskip("gangplan.hybrid.bench.peers.metis", exc_type=ImportError)


@pytest.mark.parametrize("objective", ["throughput", "step"])
def test_plans(objective: str) -> None:
    """A network of equal layers is halved: the plan is feasible and close to the optimum."""
    problem = gangplan.with_objective(gangplan.generate("gpt", layers=8, devices=2), objective)
    run = Run(problem, time_limit=20)
    metis.solve(run)
    best = gangplan.solve(problem, time_limit=5, workers=1)
    assert run.objective is not None and best.bound is not None and best.objective is not None
    assert best.bound * (1 - 1e-9) <= run.objective <= 2 * best.objective


def test_random_graphs() -> None:
    """Of random problems, colocation and backward ops among them, most have a plan that the verifier passes."""
    tools, found = suite("throughput"), 0
    for seed in range(30):
        run = Run(tools.random_problem(seed, "contiguous"), time_limit=5)
        metis.solve(run)
        best = tools.optimum(run.problem)
        assert run.objective is None or (best is not None and run.objective >= best * (1 - 1e-9))
        found += run.plan is not None
    assert found >= 6


def test_other_objectives() -> None:
    """METIS partitions graphs and nothing else."""
    with pytest.raises(NotImplementedError, match="METIS"):
        metis.solve(Run(suite("schedule").random_problem(0, ""), time_limit=1))
