"""What a log tells of the past."""

from __future__ import annotations

from pathlib import Path

from gangplan import Scheduler
from gangplan.hybrid.online.journal.history import history_of
from gangplan.hybrid.online.journal.read import read_log
from gangplan.instances.placement import Fleet, GangJob


def test_runs_after_a_resize(tmp_path: Path) -> None:
    """Runs that begin and end after nodes came are told too: of three jobs of 10 s, one starts on the new node."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 2, 4), log=path)
    for name in "abc":
        scheduler.submit(GangJob(name, "m", (4,)), 10.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.resize(Fleet.regular(1, 3, 4), now=5.0)
    scheduler.decide(60.0)
    for i, name in enumerate("abc"):
        scheduler.finish(name, now=12.0 + i)
        scheduler.decide(60.0)
    past = history_of(read_log(path))
    assert past.course.first == {"a": 0.0, "b": 0.0, "c": 5.0}
    assert past.course.finish == {"a": 12.0, "b": 13.0, "c": 14.0}
    # 12, 13 and 9 seconds of work where 10 were expected
    assert {name: round(job.work, 9) for name, job in past.jobs.items()} == {"a": 1.2, "b": 1.3, "c": 0.9}
