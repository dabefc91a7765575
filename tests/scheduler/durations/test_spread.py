"""Distributions of work: what is left at an age, and the Gittins index."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.durations.spread import expected, index, passed, quantile


def test_what_is_left_given_an_age() -> None:
    """Amounts that a job has passed count no more, and beyond the last it is taken to need twice as much."""
    work = (1.0, 2.0, 9.0)
    assert expected(work, 0.0) == 4.0
    assert expected(work, 1.5) == 5.5  # 2 or 9
    assert expected(work, 9.0) == 18.0 and expected(work, 40.0) == 72.0
    assert passed(work, 2.0)[0] == 2.0
    assert quantile(work, 0.5) == 2.0


def test_index_of_two_amounts() -> None:
    """A job that needs 1 or 9 counts as 2 at first, and as 8 once it has had 1."""
    # stopped at 1: it takes 1 and ends with probability 1/2, which is 2; never stopped: it takes 5
    assert index((1.0, 9.0), 0.0) == 2.0
    assert index((1.0, 9.0), 1.0) == 8.0
    assert index((7.0,), 0.0) == 7.0  # a known amount is what is left


def test_index_against_all_amounts() -> None:
    """The index is the least ratio of work to chance over every amount at which a job could be stopped."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        work = np.sort(rng.lognormal(3.0, 2.0, 7))
        age = float(rng.choice([0.0, work[2], work[4]]))
        rest = work[work > age] - age
        ratios = [np.minimum(rest, stop).mean() / (rest <= stop).mean() for stop in rest]
        assert index(tuple(work.tolist()), age) == pytest.approx(min(ratios))


def test_order_by_index() -> None:
    """Two jobs need 1 or 9 s, or 4 s, on one GPU: who may end at once is first, and gives way when it does not."""
    scheduler = Scheduler(Fleet.regular(1, 1, 1), "heuristic", price=0.0, durations="history")
    for kind, seconds in (("coin", 9.0), ("four", 3600.0), ("coin", 9.0), ("coin", 86400.0)) * 15:
        name = f"{kind}{scheduler.now}"
        scheduler.submit(GangJob(name, "m", (1,)), title=kind)
        scheduler.decide(60.0)
        scheduler.finish(name, now=scheduler.now + seconds)
    begin = scheduler.now
    scheduler.submit(GangJob("may be long", "m", (1,)), title="coin")
    scheduler.submit(GangJob("an hour", "m", (1,)), title="four")
    assert [start.job for start in scheduler.decide(60.0).starts] == ["may be long"]
    decision = scheduler.decide(60.0, now=begin + 1800.0)
    assert [stop.job for stop in decision.stops] == ["may be long"]
    assert [start.job for start in decision.starts] == ["an hour"]


def test_restored_with_ages() -> None:
    """A scheduler restored from JSON while jobs age decides as the first would have, stops included."""
    rng = np.random.default_rng(6)
    jobs = [(float(rng.exponential(60.0)), int(rng.integers(1, 5)), float(rng.lognormal(6.0, 2.0))) for _ in range(120)]

    def play(scheduler: Scheduler, first: int, last: int, ends: dict[str, float]) -> list[Any]:
        told: list[Any] = []
        for i in range(first, last):
            gap, workers, seconds = jobs[i]
            now = scheduler.now + gap
            scheduler.submit(GangJob(f"j{i}", "m", (workers,)), now=now, user=f"u{i % 3}", limit=3 * seconds)
            for name in [name for name in scheduler.running if ends[name] <= now]:
                scheduler.finish(name)
            decision = scheduler.decide(60.0)
            for start in decision.starts:
                ends[start.job] = now + jobs[int(start.job[1:])][2]
            told.append((decision.starts, decision.stops))
        return told

    fleet = Fleet.regular(1, 2, 4)
    one, other = (Scheduler(fleet, price=30.0, durations="history") for _ in range(2))
    ends: dict[str, float] = {}
    before = play(one, 0, 80, ends)
    assert any(stops for _, stops in before)
    other.restore(json.loads(json.dumps(one.snapshot())))
    assert other.snapshot() == one.snapshot()
    assert play(one, 80, 120, dict(ends)) == play(other, 80, 120, dict(ends))
