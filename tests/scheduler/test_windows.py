"""Drains and reservations: who starts before them, who stops for them, and where the first in order is to start."""

from __future__ import annotations

import itertools
import json
import random
from math import inf

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob, Proximity
from gangplan.scheduler import Scheduler, WaitingJob
from gangplan.scheduler.starting.reservations import reserve


def one(name: str, workers: int = 1) -> GangJob:
    """Return a job of so many GPUs."""
    return GangJob(name, "any", (workers,))


def where(s: Scheduler, now: float) -> dict[str, list[str]]:
    """Return who starts now, and on which nodes."""
    return {start.job: [*start.nodes] for start in s.decide(60.0, now=now).starts}


def test_who_would_run_into_a_drain_does_not_start_there() -> None:
    """Of two jobs only one ends before the node closes; the other one starts when it opens again, and says why."""
    s = Scheduler(Fleet.regular(1, 1, 2), "heuristic")
    s.drain("node0", at=100.0, until=150.0, now=0.0)
    s.submit(one("long"), 100.5)
    s.submit(one("short"), 100.0)
    assert where(s, 0.0) == {"short": ["node0"]} and s.wake == 100.0
    told = s.explain("long")
    assert isinstance(told, WaitingJob) and told.earliest == 150.0
    assert told.why == "nodes are closed to it before it would end: drain-node0 (1 node from 100 s to 150 s)"
    s.finish("short", now=100.0)
    assert where(s, 100.0) == {} and s.wake == 150.0
    assert where(s, 150.0) == {"long": ["node0"]} and s.windows == () and s.wake is None


def test_a_drain_stops_who_may_be_stopped() -> None:
    """The one goes on elsewhere with what is left of it, the other runs on, and nobody new starts until it is over."""
    s = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=5.0)
    s.submit(one("stays"), 100.0, now=0.0)
    s.change("stays", price=None)
    s.submit(one("goes"), 100.0)
    assert where(s, 0.0) == {"stays": ["node0"], "goes": ["node0"]}
    s.drain("node0", now=40.0)
    s.submit(one("new", 2), 10.0)
    decision = s.decide(60.0)
    (stop,) = decision.stops
    assert (stop.job, stop.other, stop.cause, stop.left, stop.price) == ("goes", "", "drain", 60.0, 5.0)
    assert "goes for a drain: 60 s left" in str(decision)
    # the short one takes both GPUs of the other node; then who was stopped has what was left to do, and its price
    assert [(x.job, [*x.nodes]) for x in decision.starts] == [("new", ["node1"])]
    s.finish("new", now=50.0)
    (start,) = s.decide(60.0).starts
    assert (start.job, [*start.nodes], start.seconds) == ("goes", ["node1"], 65.0)
    s.submit(one("more", 2), 1.0)
    assert where(s, 50.0) == {} and s.running == ("stays", "goes")
    s.finish("stays", now=51.0)
    assert where(s, 51.0) == {}
    s.undrain("node0")
    assert where(s, 51.0) == {"more": ["node0"]}


def test_a_reservation_is_for_some() -> None:
    """Its user, its queue with all below it, a job by name and an array may be there; others only before it."""
    s = Scheduler(Fleet.regular(1, 1, 8), "heuristic")
    s.reserve(["node0"], 50.0, name="exam", users=["ann"], queues=["lab"], jobs=["me", "a"], now=0.0)
    s.submit(one("ann's"), 100.0, user="ann")
    s.submit(one("deep"), 100.0, queue="lab.deep")
    s.submit(one("other"), 100.0, queue="labour")
    s.submit(one("me"), 100.0)
    s.submit_array(one("a"), 2, 100.0)
    s.submit(one("you"), 100.0, user="bob")
    s.submit(one("early"), 50.0)
    assert sorted(where(s, 0.0)) == ["a[0]", "a[1]", "ann's", "deep", "early", "me"]
    s.cancel("exam")
    assert sorted(where(s, 0.0)) == ["other", "you"]
    s.drain("node0", at=200.0, until=300.0)
    for name in s.running:
        s.finish(name, now=100.0)
    s.submit(one("past"), 100.5, user="ann")
    s.submit(one("fits"), 100.0, user="ann")
    assert where(s, 100.0) == {"fits": ["node0"]} and where(s, 299.0) == {} and where(s, 300.0) == {"past": ["node0"]}


def test_a_reservation_by_count_takes_who_is_free_first() -> None:
    """Of four nodes one is down and one in a window; of the others that one is taken whose job ends first."""
    s = Scheduler(Fleet.regular(1, 4, 1), "heuristic")
    for i, seconds in enumerate((90.0, 10.0, 80.0, 70.0)):
        s.submit(one(f"j{i}"), seconds, now=0.0)
        s.decide(60.0)
    s.fail_node("node3")
    s.drain("node1", at=5.0)
    window = s.reserve(1, 20.0, 60.0)
    assert (window.name, window.nodes) == ("window1", ("node2",)) and window in s.windows
    with pytest.raises(InstanceError, match="2 are more than the 1 that are up"):
        s.reserve(2, 20.0, 60.0)


def test_a_reservation_of_the_first_does_not_count_closed_nodes() -> None:
    """A job of a quarter node starts beside the one before it, whose node it does not take: that closes too early.

    The first needs a node for 50 s. node0 is free at 10 and closes at 30, so it starts on node1, at 100. Were node0
    open, it would start there at 10, and a job of 25 s on the GPU that is idle there would delay it.
    """
    for drained in (False, True):
        s = Scheduler(Fleet.regular(1, 2, 4), "heuristic")
        s.submit(one("a", 3), 10.0, now=0.0)
        s.submit(one("b", 4), 100.0)
        assert where(s, 0.0) == {"a": ["node0"], "b": ["node1"]}
        if drained:
            s.drain("node0", at=30.0)
        s.submit(one("first", 4), 20.5)
        s.change("first", 50.0)
        s.submit(one("small"), 25.0)
        s.change("first", 24.0)  # before the small one in order, and too long for node0 still
        assert where(s, 0.0) == ({"small": ["node0"]} if drained else {})
        told = s.explain("first")
        assert isinstance(told, WaitingJob) and told.earliest == (100.0 if drained else 10.0)


def test_who_is_due_and_those_behind_it_pass_windows() -> None:
    """A due job that windows keep off is not delayed, and a shorter one of its line, due too, starts before it."""
    s = Scheduler(Fleet.regular(1, 1, 4), "heuristic", patience=1.0)
    s.submit(one("long"), 60.0, now=0.0)
    s.submit(one("short"), 20.0)
    s.reserve(["node0"], 0.0, 70.0, name="w")
    s.decide(60.0)
    s.cancel("w", now=65.0)
    s.drain("node0", at=100.0)
    assert where(s, 65.0) == {"short": ["node0"]}


def test_who_never_fits_while_nodes_are_closed_does_not_stand_before_others() -> None:
    """A due gang needs a node that is drained for good; the due job behind it is still not delayed by a new one.

    That one needs all of node0 and has it at 100. A job of 1000 s on the GPU that is idle there would delay it.
    """
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic", patience=1.0)
    s.submit(one("runs", 3), 100.0, now=0.0)
    s.decide(60.0)
    s.drain("node1")
    s.submit(one("gang", 8), 10.0)
    s.submit(one("due", 4), 20.0)
    s.submit(one("new"), 1000.0, now=50.0)
    assert where(s, 50.0) == {}
    s.finish("runs", now=100.0)
    assert where(s, 100.0) == {"due": ["node0"]}


def test_nobody_stops_where_the_other_could_not_run() -> None:
    """Two nodes hold long jobs, and two short ones come: where a node closes too early, one starts, on the other."""
    for drained in (False, True):
        s = Scheduler(Fleet.regular(1, 2, 1), "heuristic", price=1.0)
        for name in ("long0", "long1"):
            s.submit(one(name), 2000.0, now=0.0)
            s.decide(60.0)
        if drained:
            s.drain("node0", at=150.0)
        for name in ("short0", "short1"):
            s.submit(one(name), 60.0, now=100.0)
        decision = s.decide(60.0)
        both = {"short0": ["node0"], "short1": ["node1"]}
        assert {x.job: [*x.nodes] for x in decision.starts} == ({"short0": ["node1"]} if drained else both)
        assert [x.job for x in decision.stops] == (["long1"] if drained else ["long0", "long1"])
        assert {x.cause for x in decision.stops} == {"gain"}


@pytest.mark.parametrize(("at", "starts"), [(100.0, {}), (120.0, {"pair": ["node0", "node1"]})])
def test_a_slow_place_counts(at: float, starts: dict[str, list[str]]) -> None:
    """Two GPUs of two nodes make 60 s twice as many, 120: it waits where one of them closes before."""
    s = Scheduler(Fleet.regular(1, 2, 2), "heuristic", speeds=Proximity(0.0, 1.0, 1.0), together=False)
    s.submit(one("a"), 10.0, now=0.0)
    s.submit(GangJob("b", "any", (1,), apart=("a",)), 10.0)
    assert where(s, 0.0) == {"a": ["node0"], "b": ["node1"]}
    s.submit(one("pair", 2), 60.0)
    s.drain("node1", at=at)
    assert where(s, 0.0) == starts


@pytest.mark.parametrize("seed", range(30))
def test_the_time_of_a_reservation_is_that_of_enumeration(seed: int) -> None:
    """The first time at which enough GPUs are free on nodes that are open until the job ends, of all there are."""
    rng = random.Random(seed)
    s = Scheduler(Fleet.regular(1, 4, 4), "heuristic", together=False)
    for i in range(12):
        s.submit(one(f"j{i}", rng.randint(1, 4)), float(rng.randint(1, 40)), now=0.0)
        s.decide(60.0)
    for i in range(rng.randint(1, 5)):
        begin = float(rng.randint(1, 50))
        nodes = rng.sample(["node0", "node1", "node2", "node3"], rng.randint(1, 3))
        s.reserve(nodes, begin, rng.choice((None, begin + rng.randint(1, 40))), name=f"w{i}")
    workers, lasts = rng.randint(4, 12), float(rng.randint(1, 40))
    s.submit(one("gang", workers), lasts)
    running = s._state.running

    def free(node: int, now: float) -> int:
        if any(f"node{node}" in w.nodes and w.begin < now + lasts and now < w.end for w in s.windows):
            return 0
        return 4 - sum(len(job.nodes.get(node, ())) for job in running.values() if job.end > now)

    times = sorted({0.0, *(job.end for job in running.values()), *(w.end for w in s.windows if w.end < inf)})
    enough = (now for now in times if sum(free(node, now) for node in range(4)) >= workers)
    gang = s._state.placed(s._state.waiting["gang"], workers)
    assert reserve(s._state, gang).time == next(enough, inf)


def test_snapshots_keep_windows() -> None:
    """A restored scheduler has the same windows, and decides alike."""
    s = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=5.0)
    s.drain("node0", at=10.0, now=0.0)
    s.reserve(1, 10.0, 20.0, users=["ann"])
    saved = json.loads(json.dumps(s.snapshot()))
    again = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=5.0)
    again.restore(saved)
    assert again.windows == s.windows and json.loads(json.dumps(again.snapshot())) == saved
    for x in (s, again):
        x.submit(one("new"), 15.0)
        assert where(x, 0.0) == {}


def test_what_is_refused() -> None:
    """An error names the field, and nothing has changed."""
    s = Scheduler(Fleet.regular(1, 2, 2), "heuristic")
    s.drain("node1", at=10.0, now=5.0)
    s.reserve(["node0"], 10.0, name="w")
    before = s.snapshot()
    calls = [
        (lambda: s.drain("node7"), "node: 'node7' is no node"),
        (lambda: s.drain("node0", at=4.0), "at: 4.0 is before 5.0"),
        (lambda: s.drain("node0", at=8.0, until=8.0), "until: 8.0 is not after at"),
        (lambda: s.drain("node0", now=1.0), "now: 1.0 is before"),
        (lambda: s.undrain("node0"), "node: 'node0' is not drained"),
        (lambda: s.reserve([], 9.0), "nodes: names no node"),
        (lambda: s.reserve("node0", 9.0), "nodes: 'node0' is no sequence of names"),
        (lambda: s.reserve(["node9"], 9.0), "node: 'node9' is no node"),
        (lambda: s.reserve(0, 9.0), "nodes: 0 is not positive"),
        (lambda: s.reserve(["node0"], 9.0, name="w"), "name: 'w' is a window already"),
        (lambda: s.reserve(["node0"], 9.0, users="ann"), "users: 'ann' is no sequence"),
        (lambda: s.cancel("x"), "window: 'x' is no window; there are drain-node1, w"),
    ]
    for call, words in calls:
        with pytest.raises(InstanceError, match=words):
            call()
        assert s.snapshot() == before
    rows = before["windows"]
    for row, key in itertools.product(rows, rows[0]):
        with pytest.raises(InstanceError, match="snapshot"):
            s.restore({**before, "windows": [{**row, key: -1}]})
