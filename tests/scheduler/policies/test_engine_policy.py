"""`Scheduler` in the simulator: it keeps the contract of policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.instances.workload import Workload
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import check_policy, simulate_named


@pytest.mark.parametrize(
    "options", [{}, {"price": 60.0}, {"price": 5.0, "grace": 45.0}, {"policy": "heuristic", "told": False}]
)
def test_contract_of_the_simulator(options: dict[str, Any]) -> None:
    """Traces run through it, with failures: every job is done, twice alike, every schedule passes the check."""
    check_policy(lambda: SchedulerPolicy(**options), traces=1)


def test_a_simulated_job_stops_at_the_end_of_its_grace() -> None:
    """Who is told to stop at 100 s does at 130 s, whoever it stops for starts then, and it has lost nothing."""
    jobs = Workload(("long", "short"), np.array([0.0, 100.0]), np.array([2, 2]), np.array([1000.0, 10.0]))
    done = simulate_named(jobs, 1, 2, lambda: SchedulerPolicy(price=0.0, grace=30.0), discipline="overtake")
    assert done.finish.tolist() == [1010.0, 140.0]


def test_terms_of_a_trace() -> None:
    """A scheduler hears of each job's queue, user, title, priority and limit."""
    jobs = Workload(
        ("a", "b"),
        np.array([0.0, 1.0]),
        np.array([2, 2]),
        np.array([10.0, 5.0]),
        queue=("x", ""),
        user=("ann", ""),
        title=("train", ""),
        priority=np.array([3, 0]),
        limit=np.array([60.0, np.inf]),
    )
    told: list[dict[str, Any]] = []
    submit = Scheduler.submit

    def spy(self: Scheduler, job: Any, seconds: Any = None, **more: Any) -> None:
        told.append({name: value for name, value in more.items() if name != "now"} | {"seconds": seconds})
        submit(self, job, seconds, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "submit", spy)
        simulate_named(jobs, 1, 2, SchedulerPolicy, discipline="overtake")
    first = {"queue": "x", "user": "ann", "title": "train", "priority": 3, "limit": 60.0, "seconds": [10.0]}
    usual = {"queue": "", "user": "", "title": "", "priority": 0, "limit": None, "seconds": [5.0]}
    assert told == [first, usual]


def test_terms_that_are_not_told() -> None:
    """A scheduler hears of no user and no limit where these are left out: studies of history rest on it."""
    jobs = Workload(("a",), np.zeros(1), np.ones(1, dtype=int), np.array([5.0]), user=("ann",), limit=np.array([60.0]))
    policy = SchedulerPolicy(False, ("queue", "title"), durations="history")
    simulate_named(jobs, 1, 2, lambda: policy, discipline="overtake")
    groups = policy.scheduler.snapshot()["durations"]["groups"]
    assert {kind for (kind, *_), *_ in groups} == {0, 1, 2, 9, 10}  # all, by size and model: nobody's, of no limit
