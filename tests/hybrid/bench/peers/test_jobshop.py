"""Schedules by PyJobShop, where it is installed."""

from __future__ import annotations

import pytest

from gangplan import Run
from gangplan.solvers.method import suite

jobshop = pytest.importorskip("gangplan.hybrid.bench.peers.jobshop", exc_type=ImportError)


def test_optima() -> None:
    """PyJobShop proves the optima that enumeration finds; what it cannot express it refuses."""
    tools, seen, refused = suite("schedule"), 0, 0
    for seed in range(30):
        run = Run(tools.random_problem(seed, ""), time_limit=20)
        try:
            jobshop.solve(run)
        except NotImplementedError:
            refused += 1
            continue
        best = tools.optimum(run.problem)
        if best is None:
            assert run.plan is None
            continue
        assert run.objective == pytest.approx(best, rel=2e-6)
        assert run.bound is None or run.bound <= best * (1 + 2e-6)
        seen += 1
    assert seen >= 4 and refused >= 4
