"""The plain models as rivals: each by each solver, without what `solve` prepares, against enumeration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangplan import Run
from gangplan.hybrid.bench.peers.cbc import solve as cbc
from gangplan.hybrid.bench.peers.plain import cpsat, highs
from gangplan.solvers.method import OBJECTIVES, suite


@pytest.mark.parametrize("peer", [cpsat, highs, cbc])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_optima(objective: str, peer: Any) -> None:
    """A plain model finds the optimum and no bound above it, and proves most."""
    tools, seen, proved = suite(objective), 0, 0
    for seed in range(80 if objective == "placement" else 24 if peer is cpsat else 12):
        problem = tools.random_problem(seed, tools.variants[0])
        run = Run(problem, time_limit=30)
        try:
            peer(run)
        except NotImplementedError:
            continue
        best = tools.optimum(problem)
        if best is None:
            assert run.plan is None and (run.infeasible or run.bound is None)
            continue
        assert run.objective == pytest.approx(best, rel=2e-6, abs=1e-12)
        assert run.bound is None or run.bound <= best + 2e-6 * abs(best) + 1e-12
        seen += 1
        proved += run.gap is not None and run.gap <= 1e-6
    assert seen >= 3 and proved >= 0.7 * seen, (seen, proved)


def test_what_is_left_out() -> None:
    """What a model leaves out, its peer does not solve."""
    problem = replace(suite("step").random_problem(0, ""), contention=True)
    with pytest.raises(NotImplementedError, match="contention"):
        highs(Run(problem, time_limit=5))
