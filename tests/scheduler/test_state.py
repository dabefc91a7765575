"""What the scheduler remembers: little, however long it runs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from math import inf, nextafter

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.state import RECENT


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


def test_wake_for_a_stop() -> None:
    """A job of 1e5 s may be stopped for one of 10 s once it ran for its price, by the clock alone."""
    s = Scheduler(Fleet.regular(1, 1, 8), price=60.0)
    s.submit(GangJob("long", "any", (8,)), 1e5, now=0.0)
    s.decide(60.0)
    assert s.wake is None  # nobody waits
    s.submit(GangJob("short", "any", (8,)), 10.0, now=10.0)
    assert not s.decide(60.0).starts and s.wake == 60.0
    assert [start.job for start in s.decide(60.0, now=60.0).starts] == ["short"]


@pytest.mark.parametrize("options", [{"patience": 0.5}, {"patience": 0.5, "max_wait": 60.0}])
def test_wake_for_who_is_due(options: dict[str, float]) -> None:
    """A job of 1,200 s is due at 600 s, and then takes the GPUs that are kept for one of two nodes."""
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic", **options)
    s.submit(GangJob("runs", "any", (4,)), 1000.0, now=0.0)
    s.submit(GangJob("pad", "any", (4,)), 300.0)
    s.decide(60.0)
    s.submit(GangJob("slow", "any", (4,)), 1200.0)
    s.finish("pad", now=300.0)
    s.submit(GangJob("wide", "any", (8,)), 1100.0)
    assert not s.decide(60.0).starts and s.wake == 600.0
    assert [start.job for start in s.decide(60.0, now=600.0).starts] == ["slow"]


def test_wake_for_who_runs_longer_than_expected() -> None:
    """It is looked at right after it should have ended at 100 s, and when it ran twice as long as by then."""
    s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", patience=1e9)
    for name in "ab":
        s.submit(GangJob(name, "any", (1,)), 100.0, now=0.0)
    s.decide(60.0)
    assert s.wake == nextafter(100.0, inf)
    s.decide(60.0, now=150.0)
    assert s.wake == 300.0


@pytest.mark.parametrize("aging", [5e-324, 1e-9, 0.1, 1e300])
@pytest.mark.parametrize("now", [0.0, 1.7e9])
def test_ageing_goes_on_whatever_the_times(aging: float, now: float) -> None:
    """A job of a class that it gains faster than the clock can say waits as any other; `wake` is later than now."""
    s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", patience=0.1, sharing={"aging": aging, "queues": {"q": 0.5}})
    for name in "ab":
        s.submit(GangJob(name, "any", (1,)), 100.0, now=now)
    for later in (0.0, 50.0, 50.1, 1e4):
        s.decide(60.0, now=now + later)
        assert s.wake is not None and s.wake > s.now


RULES: list[dict[str, object]] = [
    {},
    {"aging": 50.0, "least_run": 30.0, "most_run": 100.0},
    {"queues": {"a": 0.5, "b": 0.3}, "aging": 70.0, "most_run": 80.0},
]


def test_nothing_starts_or_stops_before_the_wake() -> None:
    """While jobs end as expected, a decision before the next event and the wake does nothing; some at the wake do."""
    some = 0
    for seed in range(24):
        rng = random.Random(seed)
        sharing, price, patience = RULES[seed % 3], rng.choice([None, 0.0, 5.0, 60.0]), rng.choice([0.5, 2.0, 50.0])

        def new(at: dict[str, object] | None = None) -> Scheduler:
            s = Scheduler(Fleet.regular(2, 2, 4), "heuristic", price=price, patience=patience, sharing=sharing)  # noqa: B023
            if at is not None:
                s.restore(at)
            return s

        s = new()
        for i in range(20):
            comes = s.now + rng.expovariate(0.05)
            while (end := min((job.end for job in s._state.running.values()), default=inf)) <= comes:
                some += _idle_until(s, end, new, rng)
                for name in [name for name, job in s._state.running.items() if job.end == end]:
                    s.finish(name, now=end)
                while s.decide(60.0).stops:
                    pass
            s.submit(
                GangJob(f"j{i}", "any", (rng.choice([1, 2, 4, 8, 12]),)),
                rng.choice([5.0, 50.0, rng.uniform(1, 300)]),
                now=max(comes, s.now),
                priority=rng.choice([0, 0, 1]),
                queue=rng.choice("ab") if "queues" in sharing else "",
            )
            while s.decide(60.0).stops:
                pass
    assert some > 3


def _idle_until(s: Scheduler, end: float, new: Callable[..., Scheduler], rng: random.Random) -> bool:
    """Check that nothing changes before the wake or an end; return whether something does at the wake."""
    until = min(end, inf if s.wake is None else s.wake)
    for at in (nextafter(until, 0.0), rng.uniform(s.now, until)):
        if s.now < at < until:
            decision = new(s.snapshot()).decide(60.0, now=at)
            assert not decision.starts and not decision.stops
    twin = new(s.snapshot())
    assert twin.wake == s.wake
    decision = twin.decide(60.0, now=until)
    return until < end and bool(decision.starts or decision.stops)
