"""What the scheduler remembers: little, however long it runs."""

from __future__ import annotations

import json

import pytest

from gangplan.hybrid.online import Scheduler
from gangplan.hybrid.online.state import RECENT
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob


def go(scheduler: Scheduler, first: int, last: int) -> None:
    """Have jobs of a model each come, run and go; every other one is withdrawn."""
    for i in range(first, last):
        name = f"job{i:06d}"
        scheduler.submit(GangJob(name, f"model{i:06d}", (1,)), now=float(i))
        if i % 2:
            scheduler.withdraw(name)
        else:
            scheduler.decide(1.0)
            scheduler.finish(name)


def test_finished_jobs_are_forgotten() -> None:
    """The names of the last jobs are known, those of earlier ones are new again, and a snapshot grows no more."""
    scheduler = Scheduler(Fleet.regular(1, 1, 4), "heuristic")
    go(scheduler, 0, 3 * RECENT)
    before = len(json.dumps(scheduler.snapshot()))
    go(scheduler, 3 * RECENT, 4 * RECENT)
    assert len(json.dumps(scheduler.snapshot())) < 1.02 * before
    last = 4 * RECENT
    for i in (last - 1, last - RECENT):
        with pytest.raises(InstanceError, match=f"job.name: 'job{i:06d}' was done already"):
            scheduler.submit(GangJob(f"job{i:06d}", "m", (1,)))
    scheduler.submit(GangJob(f"job{last - RECENT - 1:06d}", "m", (1,)))
    with pytest.raises(InstanceError, match="waits already"):
        scheduler.submit(GangJob(f"job{last - RECENT - 1:06d}", "m", (1,)))
