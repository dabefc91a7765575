"""Regret: schedules against what no policy can beat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.metrics import regret
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

from ...seeds import examples


def test_by_hand() -> None:
    """Shortest first is best on one GPU: stays of 1 and 4; longest first has 3 and 4."""
    jobs = Workload(("a", "b"), np.zeros(2), np.array([1, 1]), np.array([1.0, 3.0]))
    assert regret(simulate_named(jobs, 1, 1, "sjf")) == pytest.approx(0, abs=1e-12)
    assert regret(simulate_named(jobs, 1, 1, "ljf")) == pytest.approx(3.5 / 2.5 - 1)


def test_of_no_meaning() -> None:
    """There is none where jobs choose their degree: the bound is of jobs as submitted."""
    jobs = Workload(("a",), np.zeros(1), np.array([1]), np.array([4.0]))
    assert regret(simulate_named(jobs, 1, 4, "optimus", degrees=(1, 2, 4))) is None


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["fifo", "sjf", "srtf", "tiresias", "tetris", "gandiva"]))
def test_no_policy_is_below_the_bound(seed: int, policy: str) -> None:
    """Whatever stops or shares: the mean JCT is no less than the bound."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    jobs = Workload(
        tuple(map(str, range(n))),
        np.sort(rng.uniform(0, 50, n)),
        2 ** rng.integers(0, 4, n),
        rng.choice([1.0, 7.0, 40.0], n) * rng.uniform(0.5, 1.5, n),
    )
    consolidate = bool(rng.integers(2))
    outcome = simulate_named(jobs, 2, 4, policy, discipline="overtake", consolidate=consolidate)
    mean = float((outcome.finish - jobs.submit).mean())
    assert mean >= mean_jct_bound(jobs, 8) * (1 - 1e-9)
