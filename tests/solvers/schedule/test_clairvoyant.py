"""What no policy beats on a trace: below every simulated policy, and equal to the optimum of small ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import InstanceError
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.workload import Workload
from gangplan.simulator.trace import simulate
from gangplan.solvers.schedule.clairvoyant import clairvoyant
from gangplan.solvers.schedule.enumeration import optimum
from gangplan.solvers.schedule.run_kernels import flows
from gangplan.solvers.schedule.workload_bounds import makespan_bound, mean_jct_bound

from ...seeds import examples


def trace(seed: int, n: int, load: float = 1.0) -> Workload:
    """Make rigid jobs on eight GPUs."""
    rng = np.random.default_rng(seed)
    gpus, duration = rng.choice([1, 1, 2, 4, 8], n), np.ceil(rng.lognormal(3, 1.2, n))
    gap = duration.mean() * gpus.mean() / 8 / load
    submit = np.floor(np.cumsum(rng.exponential(gap, n)))
    return Workload(tuple(f"j{i}" for i in range(n)), submit - submit[0], gpus, duration)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 3.0]))
def test_below_the_optimum(seed: int, load: float) -> None:
    """The relaxations are no more than the optimum of five jobs by enumeration, whatever the load."""
    work = trace(seed, 5, load)
    for goal, bound in (("mean_jct", mean_jct_bound), ("makespan", makespan_bound)):
        best = optimum(ScheduleProblem.of(work, Pool(8), goal))
        assert best is not None and bound(work, 8) <= best * (1 + 1e-9)


@pytest.mark.parametrize("load", [0.5, 1.5])
@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_below_every_policy(policy: str, load: float) -> None:
    """No simulated policy beats the bounds, on nodes or on counted GPUs."""
    work = trace(1, 400, load)
    bounds = clairvoyant(work, 8, time_limit=2.0), clairvoyant(work, 8, "makespan")
    for consolidate in (False, True):
        outcome = simulate(work, 2, 4, policy=policy, discipline="overtake", consolidate=consolidate)
        assert bounds[0].bound <= (outcome.finish - outcome.workload.submit).mean() * (1 + 1e-9)
        assert bounds[1].bound <= outcome.finish.max() * (1 + 1e-9)


def test_small_traces_are_solved() -> None:
    """Thirty jobs are scheduled to proved optimality."""
    found = clairvoyant(trace(0, 30), 8)
    assert found.objective == pytest.approx(found.bound, rel=1e-6)


def test_mean_busy_times() -> None:
    """Work 2 from 0, work 1 from 1: the less preempts; the means are 1.5 of 1..2 and 1.5 of 0..1 and 2..3."""
    given = [0.0, 1.0], [2.0, 1.0], [1.0, 1.0], [0, 1]
    assert flows(*given, False)[1] == pytest.approx(1.5 + 1.5 - 1.0)
    # equal remaining work at 1: either goes first, completions 2 and 3
    assert flows(*given, True)[0] == pytest.approx(5.0 - 1.0)


def test_bad_input() -> None:
    """A goal that is not known and a job that never fits are named."""
    with pytest.raises(InstanceError, match="goal: 'p99' is not one of mean_jct, makespan"):
        clairvoyant(trace(0, 3), 8, "p99")
    with pytest.raises(InstanceError, match=r"gpus\[\d+\]: job j\d+ needs"):
        clairvoyant(trace(0, 30), 4)


def test_clairvoyant_on_any_clock() -> None:
    """The bound of a trace is the same at a Unix time, to the places that time has."""
    rng = np.random.default_rng(0)
    submit, duration, gpus = np.cumsum(rng.random(200)), 0.001 * rng.random(200), rng.integers(1, 5, 200)
    names = tuple(map(str, range(200)))
    near, far = (mean_jct_bound(Workload(names, submit + zero, gpus, duration), 8) for zero in (0.0, 1.7e9))
    assert far == pytest.approx(near, abs=1e-6)
    same = (mean_jct_bound(Workload(names, np.full(200, zero), gpus, duration), 8) for zero in (0.0, 1.7e9))
    assert next(same) == pytest.approx(next(same), abs=1e-6)
