"""The annealing counts seconds and bytes as the verifier does."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.solvers import Run
from gangplan.solvers.partition.latency.annealing import local_search
from gangplan.solvers.partition.latency.dominate import dominate
from gangplan.solvers.partition.latency.kernels import LatencyArrays, LatencyState, anneal
from gangplan.solvers.partition.latency.methods import METHODS
from gangplan.solvers.partition.latency.reduced import reduce
from gangplan.solvers.partition.tiny import random_latency as random_problem


@pytest.mark.parametrize("merged", [False, True])
def test_the_best_it_claims_is_what_the_verifier_says(merged: bool) -> None:
    """After thousands of moves, taken back or not, the best plan has the latency claimed, and fits."""
    better = 0
    for seed in range(60):
        problem = random_problem(seed, ops=14)
        run = Run(problem, time_limit=60)
        r = dominate(reduce(problem)) if merged else reduce(problem)
        METHODS["greedy"].run(run, r)
        slots = None if run.plan is None else r.slots_of(run.plan)
        if slots is None or run.objective is None:
            continue
        data, best = LatencyArrays(r), np.array(slots, np.int64)
        least = anneal(data, LatencyState(data, slots), best, run.objective, 0.1, 0.001, 5000, seed)
        verdict = verify(problem, r.plan(best))
        assert verdict.ok and verdict.objective == pytest.approx(least, rel=1e-9), seed
        better += least < run.objective
    assert better > 5


def test_it_ends_by_itself_and_needs_a_plan() -> None:
    """Without a plan nothing is done; on a small problem it stops long before its time, the same for a seed."""
    problem, found = random_problem(5, ops=10), []
    for _ in range(2):
        run = Run(problem, time_limit=60, seed=5)
        r = reduce(problem)
        local_search(run, r)
        assert run.plan is None
        METHODS["local_search"].run(run, r)
        assert run.plan is not None and run.stop_reason is None
        found.append(run.plan.device.tolist())
    assert found[0] == found[1]
