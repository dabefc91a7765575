"""Running jobs: what their age says of them."""

from __future__ import annotations

from gangplan.instances.placement import GangJob
from gangplan.scheduler.queueing.request import Request
from gangplan.scheduler.stopping.running_jobs import RunningJob


def test_ages_go_on_where_amounts_are_closer_than_the_clock_tells() -> None:
    """At 1e9 s three amounts a billionth apart are one time: the next that says something new is later than now."""
    work = (1.0, 1.0 + 1e-9, 1.0 + 2e-9, 50.0)
    request = Request(GangJob("a", "any", (1,)), 0.0, (50.0,), False, True, 0, work=work)
    job, after = RunningJob(request, 1, 1e9, 1e9 + 50, {0: (0,)}).aged(1e9 + 1)
    assert after == job.end == 1e9 + 50
