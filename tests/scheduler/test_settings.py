"""When waiting jobs are due: nobody waits longer than the settings and the documented bound say."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler, WaitingJob
from gangplan.scheduler.settings import SchedulerSettings

DAY = 86400.0


@pytest.mark.parametrize(
    ("patience", "max_wait", "seconds", "due"),
    [
        (50.0, DAY, 100.0, 5000.0),
        (50.0, DAY, 3600.0, DAY),
        (50.0, DAY, 14400.0, 144000.0),
        (50.0, None, 14400.0, 720000.0),
        (2.0, DAY, 14400.0, 28800.0),
        (50.0, 0.0, 100.0, 1000.0),
    ],
)
def test_when_a_job_is_due(patience: float, max_wait: float | None, seconds: float, due: float) -> None:
    """It is due after patience, or after `max_wait` if that is sooner and it waited ten times its seconds."""
    settings = SchedulerSettings(True, True, 0.0, False, None, patience, max_wait=max_wait)
    assert settings.due_after(seconds) == due


def play(scheduler: Scheduler, jobs: list[tuple[float, GangJob, float]], until: float = inf) -> dict[str, float]:
    """Submit jobs when they come, end them when they are expected to, and return when each started first."""
    began: dict[str, float] = {}
    ends: dict[str, float] = {}
    while jobs or ends:
        times = [*ends.values(), *([jobs[0][0]] if jobs else []), scheduler.wake or inf]
        now = min(time for time in times if time >= scheduler.now)
        if now > until:
            break
        for name in [name for name, end in ends.items() if end <= now]:
            del ends[name]
            scheduler.finish(name, now=now)
        while jobs and jobs[0][0] <= now:
            _, job, seconds = jobs.pop(0)
            scheduler.submit(job, seconds, now=now)
        decision = scheduler.decide(60.0, now=now)
        for stop in decision.stops:
            ends.pop(stop.job, None)
        for start in decision.starts:
            began.setdefault(start.job, now)
            ends[start.job] = now + start.seconds
    return began


@pytest.mark.parametrize("options", [{}, {"price": 60.0}])
def test_a_large_job_among_small_ones(options: dict[str, Any]) -> None:
    """A job of two hours on all GPUs starts a day after it came, or as long after as what runs then takes."""
    jobs = [(400.0 * i, GangJob(f"small{i}", "any", (4,)), 600.0) for i in range(260)]
    jobs.insert(3, (801.0, GangJob("large", "any", (8,)), 7200.0))
    began = play(Scheduler(Fleet.regular(1, 1, 8), **options), jobs, until=1.2 * DAY)
    assert DAY <= began["large"] - 801.0 <= DAY + 600.0


def test_explain_names_until_when_others_pass() -> None:
    """A job that others pass says until when, and that nothing was learned of how long that takes; `whatif` too."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8))
    scheduler.submit(GangJob("small", "any", (4,)), 600.0, now=0.0)
    scheduler.decide(60.0)
    asked = scheduler.whatif(GangJob("large", "any", (8,)), 14400.0)
    scheduler.submit(GangJob("large", "any", (8,)), 14400.0, now=100.0)
    told = scheduler.explain("large")
    assert isinstance(told, WaitingJob) and asked.due == 144000.0 and told.due == 144100.0 and told.probably is None
    words = " ".join(str(told).split())
    assert "due at 144100 s, in 40 h; until then" in words and "probably not known: too few" in words


@pytest.mark.parametrize("price", [None, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_nobody_waits_beyond_the_bound(seed: int, price: float | None) -> None:
    """At a load of .9 a job starts within ten lengths or a day, and (k + 1) L s more with k due jobs before it."""
    rng = np.random.default_rng(seed)
    seconds = np.where(large := rng.random(250) < 0.03, 10800.0, rng.lognormal(np.log(2400.0), 0.8, 250))
    gpus = np.where(large, 8, rng.choice([1, 2, 4], 250))
    come = rng.exponential(1.0, 250).cumsum()
    come *= float(gpus @ seconds) / (8 * 0.9) / come[-1]
    jobs = [(float(t), GangJob(f"j{i}", "any", (int(gpus[i]),)), float(seconds[i])) for i, t in enumerate(come)]
    began = play(Scheduler(Fleet.regular(1, 2, 4), price=price), jobs)
    start = np.array([began[f"j{i}"] for i in range(250)])
    due = come + np.maximum(10 * seconds, DAY)
    longest = seconds.max() + (price or 0.0)
    before = ((due[:, None] < due) & (start[:, None] > due)).sum(axis=0)
    assert (start <= due + (before + 1) * longest + 1e-6).all()
    assert (start > come + 0.5 * DAY).any()
