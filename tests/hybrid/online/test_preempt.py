"""Who is stopped for whom: lower classes, those that ran their most, and who holds more than a share."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.instances.verify.actions import Preempted, verify_preemption


def causes(decision: object) -> list[tuple[str, str, str]]:
    """Return who stops for whom, and why."""
    return [(x.job, x.other, x.cause) for x in decision.stops]  # type: ignore[attr-defined]


def test_a_gang_of_a_higher_class_has_all_nodes() -> None:
    """11 nodes of four GPUs run 44 jobs of one; a gang of 11 x 4 with a higher priority stops all and starts."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=11, gpus=4), "heuristic", price=0.0)
    for i in range(44):
        scheduler.submit(GangJob(f"s{i}", "any", (1,)), 3600.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("gang", "any", (44,)), 600.0, now=10.0, priority=1)
    decision = scheduler.decide(60.0)
    assert {x.cause for x in decision.stops} == {"priority"}
    assert len(decision.stops) == 44
    assert [x.job for x in decision.starts] == ["gang"]
    assert "no set costs less" in str(scheduler.explain(decision))


def test_who_stops_frees_nodes_that_help() -> None:
    """Of two jobs on small nodes and one on a large node, the one stops on whose node the gang fits."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=8)
    scheduler = Scheduler(fleet, "heuristic", price=0.0)
    scheduler.submit(GangJob("six", "any", (6,)), 9000.0, now=0.0)
    scheduler.submit(GangJob("three", "any", (3,)), 9000.0, now=0.0)
    scheduler.submit(GangJob("five", "any", (5,)), 100.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("four", "any", (4,)), 1e7, now=50.0, priority=3)
    # the node of six has two GPUs free, the other one none: three is the cheapest that leaves four, five has less left
    assert causes(scheduler.decide(60.0)) == [("five", "four", "priority")]


def test_the_lowest_classes_stop() -> None:
    """A job of class 5 stops a longer one of class 0 before a shorter one of class 2, and nobody of its own class."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=3), "heuristic", price=0.0)
    for name, seconds, priority in (("low", 9000.0, 0), ("middle", 100.0, 2), ("high", 50.0, 5)):
        scheduler.submit(GangJob(name, "any", (1,)), seconds, now=0.0, priority=priority)
    scheduler.decide(60.0)
    for i, expected in enumerate(["low", "middle"]):
        scheduler.submit(GangJob(f"new{i}", "any", (1,)), 1e6, now=10.0, priority=5)
        assert causes(scheduler.decide(60.0)) == [(expected, f"new{i}", "priority")]
    scheduler.submit(GangJob("new2", "any", (1,)), 1e6, now=10.0, priority=5)
    assert not scheduler.decide(60.0).stops


def test_the_least_and_the_most_that_a_job_runs() -> None:
    """Nobody stops before the least; after the most a job gives way to one of its class that waits."""
    sharing = {"least_run": 100.0, "most_run": 1000.0}
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=1), "heuristic", price=0.0, sharing=sharing)
    scheduler.submit(GangJob("first", "any", (1,)), 1e6, now=0.0, priority=1)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("second", "any", (1,)), 1e6, priority=1)
    assert not scheduler.decide(60.0, now=999.0).stops
    assert causes(scheduler.decide(60.0, now=1000.0)) == [("first", "second", "turn")]
    scheduler.submit(GangJob("third", "any", (1,)), 1.0, priority=2)
    assert not scheduler.decide(60.0, now=1099.0).stops
    assert causes(scheduler.decide(60.0, now=1100.0)) == [("second", "third", "priority")]


def test_jobs_take_turns_where_all_are_alike() -> None:
    """Without classes, too, a job gives way after the most."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=2, gpus=2), "heuristic", price=0.0, sharing={"most_run": 50.0})
    for name, gpus in (("a", 1), ("b", 1), ("c", 1)):
        scheduler.submit(GangJob(name, "any", (gpus,)), 100.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("wide", "any", (2,)), 1e5, now=10.0)
    assert not scheduler.decide(60.0).stops
    decision = scheduler.decide(60.0, now=50.0)
    assert [x.cause for x in decision.stops] == ["turn"]
    assert [x.job for x in decision.starts] == ["wide"]  # on the two GPUs of which one was idle


def test_a_queue_that_holds_its_most_makes_room_within() -> None:
    """Below a queue that may hold half of 16 GPUs, guarantees are reclaimed and classes go first, from its own."""
    queues = {"a": {"share": 0.5, "most": 0.5}, "a.x": 0.25, "a.y": 0.25, "b": 0.5}
    scheduler = Scheduler(Fleet.regular(1, 2, 8), "heuristic", price=0.0, sharing={"queues": queues})
    for i in range(8):
        scheduler.submit(GangJob(f"x{i}", "any", (1,)), 1e4 + i, now=0.0, queue="a.x")
    scheduler.decide(60.0)
    for i in range(4):
        scheduler.submit(GangJob(f"y{i}", "any", (1,)), 1e6, now=10.0, queue="a.y")
    assert [cause for _, _, cause in causes(scheduler.decide(60.0))] == ["reclaim"] * 4
    scheduler.submit(GangJob("first", "any", (2,)), 1e6, now=20.0, queue="a.x", priority=1)
    decision = scheduler.decide(60.0)  # eight GPUs are idle, but not for a
    assert scheduler.idle == 8
    assert [(job[0], cause) for job, _, cause in causes(decision)] == [("x", "priority")] * 2


def test_who_may_not_be_stopped_is_not() -> None:
    """Jobs without a price run on, and with ``preempt=False`` all do."""
    for options in ({}, {"price": 0.0, "sharing": {"preempt": False}}):
        scheduler = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=2), "heuristic", **options)
        scheduler.submit(GangJob("low", "any", (2,)), 10.0, now=0.0)
        scheduler.decide(60.0)
        scheduler.submit(GangJob("high", "any", (1,)), 100.0, now=1.0, priority=9)
        assert not scheduler.decide(60.0).stops


def test_higher_classes_go_first_and_waiting_lifts_a_class() -> None:
    """A class goes before lower ones; a job that is due for a day counts as one of the next class."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=1), "heuristic", patience=1.0)
    scheduler.submit(GangJob("runs", "any", (1,)), 10.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("low", "any", (1,)), 10.0, now=0.0)
    scheduler.submit(GangJob("high", "any", (1,)), 100.0, now=1.0, priority=1)
    scheduler.finish("runs", now=5.0)
    assert scheduler.decide(60.0).starts[0].job == "high"
    scheduler.finish("high", now=86000.0)
    scheduler.submit(GangJob("higher", "any", (1,)), 100.0, now=86411.0, priority=1)
    assert scheduler.decide(60.0).starts[0].job == "low"  # due at 10 s, of class 1 from 86,410 s on


def test_the_set_that_stops_costs_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 40 drawn clusters, no set of jobs that may stop and makes room has fewer GPU seconds left (enumeration)."""
    monkeypatch.setattr("gangplan.hybrid.online.preempt.SECONDS", 30.0)  # on a busy machine, too
    rng = random.Random(3)
    stopped = 0
    for _ in range(40):
        nodes = rng.randint(1, 3)
        scheduler = Scheduler(Fleet.regular(racks=1, nodes=nodes, gpus=4), "heuristic", price=0.0, together=False)
        for i in range(8):
            gang = GangJob(f"j{i}", "any", (rng.randint(1, 4),))
            scheduler.submit(gang, rng.randint(50, 500) * 1.0, now=0.0, priority=rng.choice((0, 0, 1)))
        scheduler.decide(60.0)
        wide = rng.randint(2, 4 * nodes)
        scheduler.submit(GangJob("new", "any", (wide,)), 1e7, now=20.0, priority=2)
        running = dict(scheduler._state.running)
        idle = scheduler.idle
        decision = scheduler.decide(60.0)
        if not decision.stops:
            assert idle >= wide
            continue
        stopped += 1
        for top in (0, 1):  # as few classes as possible
            able = [x for x in running.values() if x.request.terms.priority <= top]
            sets = [s for n in range(len(able) + 1) for s in itertools.combinations(able, n)]
            costs = [sum(x.left(20.0) * x.gpus for x in s) for s in sets if idle + sum(x.gpus for x in s) >= wide]
            if costs:
                break
        mine = [running[x.job] for x in decision.stops if x.cause == "priority"]
        assert sum(x.left(20.0) * x.gpus for x in mine) == pytest.approx(min(costs))
    assert stopped > 10


def test_the_verifier_refuses_stops_that_rest_on_nothing() -> None:
    """Each condition of a stop, broken, is named."""
    fine = Preempted("a", 5.0, "reclaim", 0, 60.0, 60.0, None, "b", 0, False, 0.6, 0.5, 0.25, 0.25)
    assert not verify_preemption(fine, {"a"})
    for changes, words in (
        ({"job": "c"}, "does not run"), ({"other": "a"}, "runs already"), ({"price": None}, "may not be stopped"),
        ({"ran": 59.0}, "at least"), ({"held": 0.5}, "is owed"), ({"asks": 0.26}, "does not let it"),
        ({"cause": "priority"}, "does not let it"), ({"cause": "turn", "same_queue": True}, "does not let it"),
    ):  # fmt: skip
        wrong = verify_preemption(replace(fine, **changes), {"a"})
        assert any(words in line for line in wrong), (changes, wrong)


@pytest.mark.filterwarnings("error")
def test_a_task_without_gpus_is_nobodys_victim() -> None:
    """Its infinite price on no GPU is no number, of which nobody is warned; the job of a lower class stops."""
    s = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=2), "heuristic", price=5.0)
    s.submit(GangJob("load", "any", (1,), Demand(gpu=0, cpu=4)), 500.0, now=0.0)
    s.submit(GangJob("low", "any", (2,)), 500.0, now=0.0)
    s.decide(60.0)
    s.submit(GangJob("high", "any", (2,)), 600.0, now=100.0, priority=1)
    assert [(x.job, x.cause) for x in s.decide(60.0).stops] == [("low", "priority")]
