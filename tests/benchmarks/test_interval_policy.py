"""`Scheduler` in the simulator of interference."""

from __future__ import annotations

import pytest

from benchmarks.interval_policy import IntervalScheduler
from gangplan.instances import InstanceError
from gangplan.systems.interference.baselines import run
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.environment import check


def test_every_job_is_done_and_reports_pay() -> None:
    """Outcomes hold, twice alike; jobs that share GPUs are done sooner where they report their speeds."""
    case = poisson(TRAINING + 3, jobs=400, servers=16, kind="ring", share=0.5, load=0.8, cluster=7)
    found = []
    for reports in (False, True, True):
        policy = IntervalScheduler(reports=reports, noise=0.03)
        outcome = run(case, policy).outcome()
        assert check(outcome) == []
        found.append(outcome.jct.mean())
        assert policy.scheduler is not None and (policy.scheduler.learned is not None) == reports
        assert len(policy.took) > 0
    assert found[1] == found[2] < 0.95 * found[0]


def test_gangs_on_several_servers() -> None:
    """Three workers on servers of two GPUs are three, though they hold both servers."""
    case = poisson(TRAINING, jobs=40, servers=8, kind="ring", load=0.5)
    assert (case.jobs.workers == 3).any()
    assert check(run(case, IntervalScheduler()).outcome()) == []


def test_parameter_servers_are_refused() -> None:
    """The scheduler places none."""
    with pytest.raises(InstanceError, match="parameter servers"):
        run(poisson(TRAINING, jobs=20), IntervalScheduler())
