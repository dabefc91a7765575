"""Stops: who gives way to whom, at which price, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob, SpeedModel
from gangplan.instances.verify.actions import Exchange, verify_stop
from gangplan.scheduler import Scheduler

FLEET = Fleet.regular(racks=1, nodes=2, gpus=4)


def job(name: str, workers: int, **options: Any) -> GangJob:
    """Return a gang of any model."""
    return GangJob(name, "m", (workers,), **options)


def names(rows: Any) -> set[str]:
    """Return the jobs of starts or stops."""
    return {row.job for row in rows}


@pytest.mark.parametrize("policy", ["hybrid", "heuristic"])
def test_short_job_stops_a_long_one(policy: str) -> None:
    """The long one gives its GPUs back, and goes on later with what was left and what the stop costs."""
    scheduler = Scheduler(FLEET, policy, price=10.0)
    scheduler.submit(job("long", 8), 1000.0)
    scheduler.decide(1.0)
    scheduler.submit(job("short", 4), 50.0, now=100.0)
    decision = scheduler.decide(1.0)
    (stop,) = decision.stops
    assert (stop.job, stop.other, stop.left, stop.price) == ("long", "short", 900.0, 10.0)
    assert names(decision.starts) == {"short"}
    assert set(decision.starts[0].nodes) < set(stop.nodes)
    assert scheduler.waiting == ("long",)
    assert any("long gives way to short" in c.action for c in scheduler.explain(decision).candidates["stops"])
    scheduler.finish("short", now=150.0)
    (start,) = scheduler.decide(1.0).starts
    assert (start.job, start.seconds) == ("long", 910.0)


def test_stop_that_does_not_pay_is_not_made() -> None:
    """Who has no price, or little more left than the other needs, goes on."""
    for price, left in ((None, 1000.0), (10.0, 90.0), (2000.0, 1000.0)):
        scheduler = Scheduler(FLEET, price=price, order=0.0)
        scheduler.submit(job("long", 8), left)
        scheduler.decide(1.0)
        scheduler.submit(job("short", 4), 50.0, now=30.0)
        decision = scheduler.decide(1.0)
        assert not decision.stops
        assert not decision.starts


def test_price_of_one_job() -> None:
    """Of two running jobs, only the one that may be stopped is."""
    scheduler = Scheduler(FLEET)
    scheduler.submit(job("fixed", 4), 5000.0)
    scheduler.submit(job("loose", 4), 4000.0, price=1.0)
    scheduler.decide(1.0)
    scheduler.submit(job("short", 2), 5.0, now=1.0)
    assert names(scheduler.decide(1.0).stops) == {"loose"}


def test_scattered_room_is_gathered() -> None:
    """A gang that needs a whole node gets one by moving a job that goes on at once on the other."""
    scheduler = Scheduler(FLEET, price=1.0)
    for name in ("a", "x", "b", "y"):
        scheduler.submit(job(name, 2), 100.0)
    scheduler.decide(1.0)
    scheduler.finish("x", now=10.0)
    scheduler.finish("y", now=10.0)
    scheduler.submit(job("gang", 4), 500.0, now=10.0)
    decision = scheduler.decide(1.0)
    (stop,) = decision.stops
    assert stop.job in ("a", "b")
    assert names(decision.starts) == {"gang", stop.job}
    assert set(scheduler.running) == {"a", "b", "gang"}
    assert not scheduler.waiting


def test_gang_that_may_spread_stops_others_where_it_must() -> None:
    """Workers that need not stay together take idle GPUs first, and others' only where these are too few."""
    scheduler = Scheduler(FLEET, price=1.0, together=False)
    for i in range(3):
        scheduler.submit(job(f"j{i}", 2), 1000.0 + i)
    scheduler.decide(1.0)
    scheduler.submit(job("wide", 4), 10.0, now=1.0)
    decision = scheduler.decide(1.0)
    assert len(decision.stops) == 1
    assert "wide" in names(decision.starts)


def test_stops_that_help_nobody_are_taken_back() -> None:
    """Where cores, which the search for room does not see, are too few, everyone runs on as before."""
    fleet = Fleet.regular(racks=1, nodes=1, gpus=4, cpu=8.0)
    scheduler = Scheduler(fleet, price=1.0)
    scheduler.submit(job("fixed", 1, worker=Demand(1.0, cpu=7.0)), 9000.0)
    scheduler.decide(1.0)
    running = scheduler._state.running
    running["fixed"] = replace(running["fixed"], request=replace(running["fixed"].request, price=None))
    scheduler.submit(job("long", 3), 1000.0)
    scheduler.decide(1.0)
    before = scheduler.snapshot()["running"]
    scheduler.submit(job("cores", 3, worker=Demand(1.0, cpu=1.0)), 5.0)
    decision = scheduler.decide(1.0)
    assert not decision.stops
    assert not decision.starts
    assert sorted(scheduler.snapshot()["running"], key=str) == sorted(before, key=str)


def test_longer_than_expected() -> None:
    """A job that runs longer than expected is expected to run as long again, so that it still can be stopped."""
    scheduler = Scheduler(FLEET, price=1.0)
    scheduler.submit(job("late", 8), 10.0)
    scheduler.decide(1.0)
    scheduler.submit(job("short", 8), 50.0, now=400.0)
    decision = scheduler.decide(1.0)
    assert decision.stops[0].left == 400.0
    assert scheduler.explain(decision).bound is not None


def test_every_job_is_done() -> None:
    """Jobs of all sizes come, stop and run: each does its seconds in the end, and no more than one runs on a GPU."""
    scheduler, rng = Scheduler(FLEET, price=2.0), np.random.default_rng(1)
    due = {f"j{i}": float(rng.exponential(20.0)) for i in range(60)}
    left, ends, since, stops = dict(due), {}, {}, 0
    arrivals = [(float(i), name) for i, name in enumerate(due)]
    while arrivals or ends:
        now, name, ended = min([(t, n, False) for t, n in arrivals[:1]] + [(t, n, True) for n, t in ends.items()])
        if ended:
            del ends[name], left[name]
            scheduler.finish(name, now=now)
        else:
            arrivals.pop(0)
            scheduler.submit(job(name, int(rng.choice([1, 2, 4, 8]))), due[name], now=now)
        decision = scheduler.decide(5.0)
        for stop in decision.stops:
            stops += 1
            left[stop.job] = ends.pop(stop.job) - max(now, since[stop.job])
        for start in decision.starts:
            paid = 2.0 if start.job in since else 0.0
            assert start.seconds == pytest.approx(left[start.job] + paid)
            since[start.job] = now + paid
            ends[start.job] = now + start.seconds
        held = [gpu for stint in scheduler._state.running.values() for n, g in stint.nodes.items() for gpu in g]
        assert len(held) + scheduler.idle == 8
    assert not left
    assert stops


GOOD = Exchange("r", 10.0, 100.0, 4, "w", 20.0, 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"job": "?"}, "does not run"),
        ({"other": "r"}, "runs already"),
        ({"price": None}, "may not be stopped"),
        ({"price": 100.0}, "has 100 s left"),
        ({"left": 30.0}, "no more left"),
        ({"needs": 20}, "no more left"),
        ({"moved": True}, ""),
        ({"moved": True, "lasts": 9.0}, "moving it costs 40 GPU s"),
    ],
)
def test_verifier(change: dict[str, Any], words: str) -> None:
    """A stop must be of a job that runs and may be stopped, for one that does not, and gain more than it costs."""
    wrong = verify_stop(replace(GOOD, **change), {"r"}, 1.0)
    assert words in wrong[0] if words else not wrong


class Oldest:
    """A policy that starts whoever came first."""

    def rank(self, view: Any) -> Any:
        """Rank by submission."""
        return [request.submit for request, _ in view.options]


def test_who_starts_now_is_not_stopped_now() -> None:
    """What a policy starts is not stopped in the same decision, nor in the next one at the same time."""
    scheduler = Scheduler(Fleet.regular(1, 1), Oldest(), price=0.0)
    scheduler.submit(job("long", 8), 1e5, now=0.0)
    scheduler.submit(job("short", 8), 100.0, now=1.0)
    for _ in range(2):
        assert not scheduler.decide(60.0, now=2.0).stops
        assert scheduler.running == ("long",)
    assert names(scheduler.decide(60.0, now=3.0).stops) == {"long"}


def test_labels_and_types_count_in_room() -> None:
    """Of two jobs for the one node of a label the better runs; nobody is moved to a node where he may not be."""
    fleet = replace(Fleet.regular(1, 2), labels=("v100",), labelled=np.array([[True, False]]))
    scheduler = Scheduler(fleet, price=600.0)
    for name, seconds in (("a", 4000.0), ("b", 4500.0)):
        scheduler.submit(job(name, 8, requires=("v100",)), seconds, now=0.0)
    for now in (0.0, 1.0, 700.0, 1400.0, 2100.0):
        assert not scheduler.decide(60.0, now=now).stops
    assert scheduler.running == ("a",)


def test_each_stop_comes_after_the_price() -> None:
    """A job gets on for its price before it is stopped, each time after it paid."""
    scheduler, now = Scheduler(Fleet.regular(1, 1), price=10.0), 0.0
    scheduler.submit(job("long", 8), 1e5)
    scheduler.decide(60.0)
    for n in (1, 2, 3):
        earliest = now + 10.0 if n == 1 else now + 20.0
        scheduler.submit(job(f"short{n}", 8), 1.0, now=now)
        assert not scheduler.decide(60.0, now=earliest - 0.1).stops
        assert names(scheduler.decide(60.0, now=earliest).stops) == {"long"}
        scheduler.finish(f"short{n}")
        scheduler.decide(60.0)
        now = earliest


def test_stops_that_lose_are_taken_back() -> None:
    """By the order of least seconds a wide job would stop eight that have a little more left: that costs more."""
    scheduler = Scheduler(Fleet.regular(1, 1), "heuristic", price=1.0, order=0.0)
    for i in range(8):
        scheduler.submit(job(f"j{i}", 1), 130.0)
    scheduler.decide(60.0)
    before = scheduler.snapshot()["running"]
    scheduler.submit(job("wide", 8), 100.0, now=10.0)
    decision = scheduler.decide(60.0)
    assert not decision.stops
    assert sorted(map(str, scheduler.snapshot()["running"])) == sorted(map(str, before))
    told = scheduler.explain(decision).candidates["stops"]
    assert any(c.why_not == "it gains no more than it costs" for c in told)
    scheduler.withdraw("wide")
    scheduler.submit(job("brief", 8), 10.0)
    assert len(scheduler.decide(60.0).stops) == 8


def test_cores_count_in_room() -> None:
    """Who holds the cores gives way, not who holds GPUs that nobody lacks."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8, cpu=16.0), price=1.0)
    scheduler.submit(job("cores", 1, worker=Demand(1.0, cpu=14.0)), 5000.0)
    scheduler.submit(job("gpus", 2), 9000.0)
    scheduler.decide(60.0)
    scheduler.submit(job("short", 1, worker=Demand(1.0, cpu=8.0)), 10.0, now=5.0)
    decision = scheduler.decide(60.0)
    assert names(decision.stops) == {"cores"} and "short" in names(decision.starts)


def test_the_first_of_a_pool_is_not_delayed_from_a_wider_one() -> None:
    """A long job that may run anywhere does not take the node for which the gang before it waits."""
    fleet = replace(Fleet.regular(1, 2, 8), labels=("a", "b"), labelled=np.array([[True, False], [False, True]]))
    scheduler = Scheduler(fleet, "heuristic")
    scheduler.submit(GangJob("full", "m", (8,), requires=("a",)), 10.0)
    scheduler.submit(GangJob("late", "m", (3,), requires=("b",)), 10.0, price=0.0)
    assert len(scheduler.decide(60.0).starts) == 2
    scheduler.submit(GangJob("gang", "m", (8,), requires=("b",)), 1e5)
    scheduler.submit(GangJob("long", "m", (1,)), 1e6)
    scheduler.submit(GangJob("short", "m", (1,)), 50.0)
    assert {start.job for start in scheduler.decide(60.0, now=100.0).starts} == {"short"}


def test_who_is_due_starts_in_room_that_stops_made_for_others() -> None:
    """It starts though a shorter one of its kind, which must not delay it, is before it in the queue."""
    scheduler = Scheduler(Fleet.regular(1, 2, 4), "heuristic", price=0.0, order=0.0, together=False, patience=3.0)
    scheduler.submit(GangJob("wide", "m", (8,)), 1e3, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("due", "m", (6,)), 1e3 + 1, now=1.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("like it", "m", (6,)), 500.0, now=3e3)
    assert "due" in scheduler.waiting
    scheduler.submit(GangJob("short", "m", (1,)), 1.0, now=3.1e3)
    started = {start.job for start in scheduler.decide(60.0).starts}
    assert started == {"short", "due"}


def test_jobs_that_are_due_do_not_wait_for_each_other() -> None:
    """Who is held after a due job is behind it, though both have room once another was stopped.

    j4 may be on n1 and n2, j6 and j7 anywhere, but only two of j7's workers have memory on n3. All are due; j3 holds n1
    and n2, so that none fits. Stops have j7 begin on n1. n2 is free, and j4, which was due first, starts there: that j6
    would now fit on n2 and n3 together makes no difference, since it was due later.
    """
    fleet = Fleet(
        names=("n1", "n2", "n3"), gpu_types=("A", "B", "C"), gpu_type=np.array([2, 1, 0], np.int32),
        gpus=np.full(3, 4, np.int32), cpu=np.full(3, 96.0), memory=np.array([1e12, 1e12, 16e9]), link=np.full(3, 3e11),
        topology=TreeTopology((Level("cluster", 1e11),), np.zeros((1, 3), dtype=np.int64)),
    )  # fmt: skip
    compute = np.array([[1.0, np.inf], [1.0, 1.0], [1.0, 1.0]])
    speeds = SpeedModel(
        ("m", "k"), ("A", "B", "C"), compute, np.ones(2), np.ones(2), np.zeros((2, 2)), np.zeros((2, 2))
    )
    scheduler = Scheduler(fleet, "heuristic", speeds=speeds, price=60.0)
    scheduler.submit(GangJob("j3", "m", (3,), Demand(2)), 10.0, now=763.0)
    scheduler.decide(60.0, now=763.0)
    scheduler.submit(GangJob("j4", "k", (1,)), 10.0)
    scheduler.submit(GangJob("j6", "m", (3,), Demand(2)), 10.0)
    scheduler.submit(GangJob("j7", "m", (4,), Demand(1, 0.0, 7.7e9)), 10.0)
    decision = scheduler.decide(60.0, now=1467.0)
    assert [stop.job for stop in decision.stops] == ["j3"]
    assert [start.job for start in decision.starts] == ["j7", "j4"]
