"""What queueing theory says of simulated clusters: waiting times, Little's law, and that arrivals are as asked."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import InstanceError
from gangplan.instances.generators.jobs import DAY, arrivals
from gangplan.instances.placement import Fleet
from gangplan.simulator.engine import POLICIES, EngineScheduler, Outages, simulate
from gangplan.simulator.trace import Outcome
from gangplan.simulator.trace import simulate as simulate_fast

from ..seeds import examples

JOBS = 500_000


def erlang_c(servers: int, load: float) -> float:
    """Return the probability of waiting in M/M/c, load in servers (Erlang 1917)."""
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / factorial(k) for k in range(servers)) + last)


def mean_wait(outcome: Outcome) -> float:
    """Return the mean time from submission to start."""
    return float((outcome.start - outcome.workload.submit).mean())


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (4, 3.2), (16, 14.0)])
def test_mmc(servers: int, load: float) -> None:
    """The mean wait in M/M/c is C(c, a) / (c - a) services."""
    jobs = arrivals(JOBS, rate=load, seed=3, mean=1.0)
    assert mean_wait(simulate_fast(jobs, 1, servers)) == pytest.approx(
        erlang_c(servers, load) / (servers - load), rel=0.02
    )


@pytest.mark.parametrize(("duration", "second"), [("fixed", 1.0), ("uniform", 4 / 3), ("lognormal", np.exp(0.8**2))])
def test_mg1(duration: str, second: float) -> None:
    """The mean wait in M/G/1 is rate E[S^2] / 2 (1 - load) (Pollaczek and Khinchine)."""
    jobs = arrivals(JOBS, rate=0.7, seed=5, duration=duration, mean=1.0, spread=0.8)
    assert float((jobs.duration**2).mean()) == pytest.approx(second, rel=0.02)
    assert mean_wait(simulate_fast(jobs, 1, 1)) == pytest.approx(0.7 * second / 2 / 0.3, rel=0.02)


def test_bursts_wait_as_theory_says() -> None:
    """In M[X]/M/1 with geometric bursts of mean b the mean wait is (load + b - 1) / (1 - load) (Burke 1975)."""
    jobs = arrivals(JOBS, rate=0.5, seed=2, process="burst", burst=3.0, mean=1.0)
    assert mean_wait(simulate_fast(jobs, 1, 1)) == pytest.approx((0.5 + 2.0) / 0.5, rel=0.02)


def area_and_stays(outcome: Outcome) -> tuple[int, int]:
    """Return the time integral of the number of jobs present, and the sum of their stays; times must be whole."""
    ran = outcome.admitted
    arrive, leave = outcome.workload.submit[ran], outcome.finish[ran]
    times = np.unique(np.concatenate([arrive, leave]))
    present = np.searchsorted(np.sort(arrive), times, "right") - np.searchsorted(np.sort(leave), times, "right")
    area = int((present[:-1] * np.diff(times).astype(np.int64)).sum())
    return area, int((leave - arrive).astype(np.int64).sum())


@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(["fifo", "sjf", "srtf", "drf", "tetris"]),
    discipline=st.sampled_from(["head", "overtake"]),
    consolidate=st.booleans(),
    cost=st.integers(0, 3),
    down=st.integers(1, 40),
)
@settings(max_examples=examples(40))
def test_little(seed: int, policy: str, discipline: str, consolidate: bool, cost: int, down: int) -> None:
    """Little's law, exactly: whatever runs, the area under the number of jobs present is the sum of their stays."""
    drawn = arrivals(60, rate=0.3, seed=seed, process="burst", burst=2.0, gpus="1:4,2:2,4:1,8:1", mean=8.0)
    whole = {"submit": np.floor(drawn.submit), "duration": np.ceil(drawn.duration)}
    work = type(drawn)(drawn.names, gpus=drawn.gpus, **whole)
    outages = Outages(((1, down, down + 7), (1, down + 30, down + 40)))
    scheduler = EngineScheduler((POLICIES[policy](),), discipline, consolidate)
    done = simulate(work, Fleet.regular(1, 3, 4), scheduler, preempt_cost=cost, outages=outages, checkpoint_interval=5)
    area, stays = area_and_stays(done)
    assert area == stays


@pytest.mark.parametrize("process", ["poisson", "burst", "diurnal"])
def test_arrivals(process: str) -> None:
    """The rate in the long run is as asked, times ascend, and a seed gives the same jobs again."""
    jobs = arrivals(200_000, rate=0.1, seed=1, process=process)
    assert jobs.n_jobs / jobs.submit[-1] == pytest.approx(0.1, rel=0.02)
    assert (np.diff(jobs.submit) >= 0).all()
    assert (arrivals(200_000, rate=0.1, seed=1, process=process).submit == jobs.submit).all()
    assert (arrivals(200_000, rate=0.1, seed=2, process=process).submit != jobs.submit).any()


def test_diurnal_arrivals_follow_the_day() -> None:
    """In the first half of each day arrivals are denser by the sine's mean over it, 2 swing / pi."""
    jobs = arrivals(200_000, rate=0.1, seed=1, process="diurnal", swing=0.5)
    early = float((jobs.submit % DAY < DAY / 2).mean())
    assert early == pytest.approx((1 + 2 * 0.5 / np.pi) / 2, abs=0.01)


def test_sizes_are_drawn_by_weight() -> None:
    """Three parts in four ask for one GPU, the others for eight."""
    jobs = arrivals(40_000, gpus="1:3,8:1", duration="lognormal", mean=50.0)
    assert set(jobs.gpus.tolist()) == {1, 8}
    assert float((jobs.gpus == 1).mean()) == pytest.approx(0.75, abs=0.01)
    assert float(jobs.duration.mean()) == pytest.approx(50.0, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"jobs": 0}, "jobs: 0 is not positive"),
        ({"rate": 0.0}, "rate: 0.0 is not positive"),
        ({"process": "weekly"}, "process: 'weekly' is not one of poisson, burst, diurnal"),
        ({"duration": "long"}, "duration: 'long' is not one of exponential, fixed"),
        ({"burst": 0.5}, "burst: 0.5 is less than 1"),
        ({"swing": 1.5}, "swing: 1.5 is more than 1"),
        ({"gpus": "1"}, "gpus: '1' is not like"),
        ({"gpus": "0:1"}, "gpus: '0:1' has a size or a weight that is none"),
    ],
)
def test_bad_arrivals(arguments: dict[str, object], words: str) -> None:
    """A wrong argument is named with its value."""
    with pytest.raises(InstanceError, match=words):
        arrivals(**arguments)  # type: ignore[arg-type]
