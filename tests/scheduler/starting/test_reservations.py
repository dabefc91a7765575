"""Reservations protect: on the nodes of a gang, all it needs there, and nobody waits for ever in any tier."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.policies.policy import Watchdog
from gangplan.scheduler.starting.starts import StartRound

TWO = replace(Fleet.regular(1, 2, 8), labels=("a", "b"), labelled=np.array([[True, False], [False, True]]))
"""A node with each label."""


def started(scheduler: Scheduler, **options: Any) -> set[str]:
    """Decide, and return who starts."""
    return {start.job for start in scheduler.decide(60.0, **options).starts}


def test_each_pool_has_its_own() -> None:
    """A gang that waits for pool a leaves the gang of pool b its reservation: a long job behind both does not start."""
    scheduler = Scheduler(TWO, "heuristic")
    for pool in "ab":
        scheduler.submit(GangJob(f"runs {pool}", "m", (4,), requires=(pool,)), 100.0)
    scheduler.decide(60.0)
    for pool in "ab":
        scheduler.submit(GangJob(f"gang {pool}", "m", (8,), requires=(pool,)), 10.0)
        scheduler.submit(GangJob(f"long {pool}", "m", (4,), requires=(pool,)), 500.0)
    assert not started(scheduler)


def test_who_would_borrow_by_now_holds_up_nobody_within_a_guarantee() -> None:
    """A small job of queue a starts beside its gang, which now would borrow: the job of queue b takes the last GPU."""
    scheduler = Scheduler(TWO, "heuristic", sharing={"queues": {"a": 0.5, "b": 0.125, "c": 0.375}})
    for pool, workers in (("a", 6), ("b", 8)):
        scheduler.submit(GangJob(f"runs {pool}", "m", (workers,), requires=(pool,)), 100.0, queue="c")
    scheduler.decide(60.0)
    scheduler.submit(GangJob("gang", "m", (8,), requires=("a",)), 10.0, queue="a")
    scheduler.submit(GangJob("small", "m", (1,)), 50.0, queue="a")
    scheduler.submit(GangJob("owed", "m", (1,)), 500.0, queue="b")
    assert started(scheduler) == {"small", "owed"}


def test_who_was_kept_for_one_that_is_due_starts_with_it() -> None:
    """The gang that is due borrows, after all within guarantees: then nothing is kept for it from the small job."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8), "heuristic", patience=1.0, sharing={"queues": {"a": 0.5, "b": 0.5}})
    scheduler.submit(GangJob("runs", "m", (2,)), 1e4, queue="a")
    assert started(scheduler) == {"runs"}
    scheduler.submit(GangJob("gang", "m", (3,)), 10.0, queue="a")
    scheduler.submit(GangJob("small", "m", (1,)), 1e4, queue="a", now=50.0)
    assert started(scheduler) == {"gang", "small"}


def test_what_is_guaranteed_is_kept_for_the_next_due_job_once_one_started() -> None:
    """The first due job of the queue starts; of what is left of the guarantee, the one behind it needs the rest."""
    fleet = Fleet.regular(1, 4, 4, labels={"x": [0]})
    scheduler = Scheduler(fleet, "heuristic", patience=1.0, sharing={"queues": {"a": 0.5}})
    scheduler.submit(GangJob("busy", "m", (4,), requires=("x",)), 100.0)
    assert started(scheduler) == {"busy"}
    scheduler.submit(GangJob("first", "m", (2,)), 10.0, queue="a")
    scheduler.submit(GangJob("next", "m", (4,), requires=("x",)), 20.0, queue="a")
    scheduler.submit(GangJob("late", "m", (4,)), 1e4, queue="a", now=50.0)
    assert started(scheduler) == {"first"}


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_guaranteed_stays_kept_when_all_are_looked_at_again(beside: bool) -> None:
    """Once the gang has started nothing is kept for it, but for the due job whose node is held, by it or another."""
    queues, fleet = {"a": 0.5, "b": 0.3, "c": 0.1}, Fleet.regular(1, 5, 4, labels={"x": [0]})
    scheduler = Scheduler(fleet, "heuristic", patience=1.0, sharing={"queues": queues})
    scheduler.submit(GangJob("busy", "m", (4,), requires=("x",)), 100.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("runs", "m", (8,)), 500.0, queue="a")
    assert started(scheduler) == {"runs"}
    if beside:
        scheduler.submit(GangJob("beside", "m", (2,), requires=("x",)), 10.0, queue="c")
    scheduler.submit(GangJob("due", "m", (4,), requires=("x",)), 20.0, queue="b")
    scheduler.submit(GangJob("gang", "m", (4,)), 10.0, queue="a")
    scheduler.submit(GangJob("small", "m", (2,)), 1e4, queue="a", now=50.0)
    scheduler.submit(GangJob("late", "m", (4,)), 1e4, queue="b")
    assert started(scheduler) == {"gang", "small"}


def test_who_ran_longer_than_expected_takes_no_guarantee_of_who_is_due() -> None:
    """It has 80 s to go by now, not the 50 s that were given: the gang that is due has its queue's share in 60 s."""
    queues = {"a": {"share": 0.25}, "b": {"share": 0.75, "lends": 0.0}}
    scheduler = Scheduler(Fleet.regular(1, 1, 8), "heuristic", patience=1.0, sharing={"queues": queues})
    scheduler.submit(GangJob("late", "m", (1,)), 50.0, queue="a", price=0.0)
    scheduler.submit(GangJob("other", "m", (1,)), 150.0, queue="a")
    assert started(scheduler) == {"late", "other"}
    scheduler.submit(GangJob("gang", "m", (2,)), 10.0, queue="a")
    scheduler.submit(GangJob("urgent", "m", (1,)), 10.0, queue="a", priority=5, now=80.0)
    assert started(scheduler) == {"urgent"}
    scheduler.finish("urgent", now=90.0)
    assert started(scheduler) == set()
    scheduler.finish("other", now=150.0)
    assert started(scheduler) == {"gang"}


def test_a_node_that_is_down_takes_no_reservation() -> None:
    """A gang whose node is down holds nobody up, and leaves the reservation to the next gang."""
    scheduler = Scheduler(TWO, "heuristic")
    scheduler.submit(GangJob("runs", "m", (4,), requires=("b",)), 100.0)
    scheduler.decide(60.0)
    scheduler.fail_node(0)
    scheduler.submit(GangJob("down", "m", (8,), requires=("a",)), 1.0)
    scheduler.submit(GangJob("gang", "m", (8,), requires=("b",)), 10.0)
    scheduler.submit(GangJob("long", "m", (4,)), 500.0)
    assert not started(scheduler)
    scheduler.finish("runs", now=100.0)
    assert started(scheduler) == {"gang"}


def test_a_start_that_is_undone_leaves_who_was_held_before() -> None:
    """Nobody may delay the gang of pool a, which waits longest, whether or not the gang of pool b starts after all."""
    scheduler = Scheduler(TWO, "heuristic")
    for pool in "ab":
        scheduler.submit(GangJob(pool, "m", (8,), requires=(pool,)), 10.0)
    starts = StartRound(scheduler._state, Watchdog())
    for pool in "ab":
        starts.kept.hold(scheduler._state.waiting[pool], strict=True)
    assert starts.one("b", (8,), "heuristic")
    starts.trial.back(["b"])
    assert starts.kept.holds("a")
    assert starts.kept.holds("b")


def test_cores_are_reserved() -> None:
    """A long job with no GPU that the gang needs, but its cores, waits; one without them starts."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8, cpu=16.0), "heuristic")
    scheduler.submit(GangJob("runs", "m", (1,), Demand(1.0, cpu=12.0)), 100.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("cores", "m", (1,), Demand(1.0, cpu=14.0)), 10.0)
    scheduler.submit(GangJob("long", "m", (1,), Demand(1.0, cpu=3.0)), 500.0)
    scheduler.submit(GangJob("small", "m", (1,), Demand(1.0, cpu=1.0)), 600.0)
    assert started(scheduler) == {"small"}


def test_another_seat_is_tried() -> None:
    """The first seat would delay the gang, which gets that node when `y` ends; another one does not."""
    scheduler = Scheduler(Fleet.regular(1, 3, 8), "heuristic")
    for name, gpus, seconds in (("x", 6, 9000.0), ("y", 5, 100.0), ("z", 5, 9000.0)):
        scheduler.submit(GangJob(name, "m", (gpus,)), seconds)
    at = {start.job: next(iter(start.nodes)) for start in scheduler.decide(60.0).starts}
    scheduler.submit(GangJob("gang", "m", (8,)), 10.0)
    scheduler.submit(GangJob("long", "m", (3,)), 5000.0)
    (start,) = scheduler.decide(60.0).starts
    assert start.job == "long" and at["y"] not in start.nodes


class LastCome:
    """A policy that starts whoever came last."""

    def rank(self, view: Any) -> Any:
        """Rank by submission."""
        return [-request.submit for request, _ in view.options]


class Nobody:
    """A policy that has all jobs wait."""

    def propose(self, view: Any) -> Any:
        """Propose nothing."""
        return []


@pytest.mark.parametrize("price", [None, 10.0])
@pytest.mark.parametrize(
    ("policy", "reserve"), [("heuristic", True), ("hybrid", False), (LastCome(), True), (Nobody(), True)]
)
def test_the_bound_on_waiting_is_kept(policy: Any, price: float | None, reserve: bool) -> None:
    """Among a stream of small jobs each starts at most (k + 1) L s after it is due, k being due before it."""
    scheduler = Scheduler(Fleet.regular(1, 3, 8), policy, price=price, reserve=reserve, patience=3.0)
    rng, now, arrivals = np.random.default_rng(0), 0.0, []
    for i in range(150):
        now += float(rng.exponential(50 / (24 * 0.8)))
        size = 24 if i in (30, 31, 90) else int(rng.choice([1, 2, 4]))
        arrivals.append((now, f"j{i}", size, 100.0 if size == 24 else float(rng.choice([20.0, 50.0]))))
    due = {name: at + 3.0 * seconds for at, name, _, seconds in arrivals}
    ends, run, first = list[tuple[float, str, float]](), dict[str, float](), dict[str, float]()
    longest = 100.0 + (price or 0.0)
    while arrivals or ends:
        if arrivals and (not ends or arrivals[0][0] <= ends[0][0]):
            now, name, gpus, seconds = arrivals.pop(0)
            scheduler.submit(GangJob(name, "m", (gpus,)), seconds, now=now)
        else:
            now, name, began = heapq.heappop(ends)
            if run.get(name) != began:
                continue
            scheduler.finish(name, now=now)
        decision = scheduler.decide(60.0, now=now)
        for stop in decision.stops:
            del run[stop.job]
        for start in decision.starts:
            run[start.job] = now
            heapq.heappush(ends, (now + start.seconds, start.job, now))
            if start.job not in first:
                before = sum(due[x] < due[start.job] for x in scheduler.waiting)
                ahead = sum(due[x] < due[start.job] and first.get(x, now) >= due[start.job] for x in due)
                assert now <= due[start.job] + (max(before, ahead) + 1) * longest + 60.0  # decisions are at events
                first[start.job] = now
        if not ends and arrivals and policy.__class__ is Nobody:
            continue
        if not ends and not arrivals and scheduler.waiting:  # all that is left waits until it is due
            now = max(now, min(due[name] for name in scheduler.waiting))
            for start in scheduler.decide(60.0, now=now).starts:
                run[start.job] = first[start.job] = now
                heapq.heappush(ends, (now + start.seconds, start.job, now))
    assert len(first) == 150


@pytest.mark.parametrize(
    ("nodes", "queues"),
    [
        (2, {"b": {"share": 0.25, "lends": 0.0}}),
        (3, {"x": {"share": 0.3333, "lends": 0.0}, "b": 0.0}),
        (3, {"b": {"share": 0.0, "most": 0.667}}),
        (4, {"b": 0.5}),
        (4, {"a": 0.5, "a.b": 0.0}),
    ],
)
def test_a_due_job_that_a_limit_or_a_guarantee_keeps_is_not_passed(nodes: int, queues: dict[str, object]) -> None:
    """A job of two nodes of a queue that may hold two starts, though ones of one node come all the time."""
    fleet = Fleet.regular(racks=1, nodes=nodes, gpus=4)
    s = Scheduler(fleet, "heuristic", patience=2.0, sharing={"queues": queues})
    count, queue = 0, [*queues][-1]
    if nodes == 4:  # the other two are somebody's for ever
        s.submit(GangJob("other", "any", (8,)), 1e7, now=0.0)
        s.decide(60.0)

    def narrow(now: float) -> None:
        nonlocal count
        s.submit(GangJob(f"n{count}", "any", (4,)), 100.0, now=now, queue=queue)
        count += 1

    for _ in range(2):
        narrow(0.0)
    ends = {x.job: x.seconds for x in s.decide(60.0).starts}
    s.submit(GangJob("wide", "any", (8,)), 100.0, now=0.0, queue=queue)  # due at 200 s, so it starts by 300 s
    s.finish("n0", now=50.0)
    del ends["n0"]
    now = 50.0
    while now <= 300.0:
        narrow(now)
        starts = s.decide(60.0, now=now).starts
        if any(x.job == "wide" for x in starts):
            break
        ends |= {x.job: now + x.seconds for x in starts}
        name = min(ends, key=lambda name: ends[name])
        now = ends.pop(name)
        s.finish(name, now=now)
    assert "wide" in s.running


TWO_HALVES = {"queues": {"b": 0.5, "x": 0.5}}


@pytest.mark.parametrize(
    ("sharing", "queue", "user", "streams"),
    [
        (TWO_HALVES, "b", "", [("b", "", 4, 3), ("x", "", 4, 4)]),
        (TWO_HALVES, "b", "", [("b", "", 2, 5), ("x", "", 2, 8)]),
        (
            {"queues": {"a": 0.5, "a.b": 0.0, "a.c": 0.0, "x": 0.5}},
            "a.b",
            "",
            [("a.c", "", 4, 3), ("x", "", 4, 4)],
        ),
        (TWO_HALVES | {"limits": {"u": 16}}, "b", "u", [("x", "u", 4, 3), ("b", "v", 4, 1)]),
        ({"limits": {"u": 16}}, "", "u", [("", "u", 4, 3), ("", "v", 4, 5)]),
    ],
)
def test_small_jobs_do_not_use_up_what_a_gang_is_guaranteed(
    sharing: dict[str, Any], queue: str, user: str, streams: list[tuple[str, str, int, int]]
) -> None:
    """A gang starts within 2 L s of when it is due, though a small job comes for each that ends, at a load under 1."""
    s = Scheduler(Fleet.regular(racks=1, nodes=8, gpus=4), "heuristic", patience=2.0, sharing=sharing)
    rng, now, ends, of = (
        np.random.default_rng(0),
        0.0,
        list[tuple[float, str]](),
        dict[str, tuple[str, str, int, int]](),
    )

    def small(stream: tuple[str, str, int, int]) -> None:
        whose, name = stream[1], f"small{len(of)}"
        of[name] = stream
        s.submit(GangJob(name, "any", stream[2:3]), rng.uniform(20.0, 100.0), now=now, queue=stream[0], user=whose)

    def decide() -> None:
        for start in s.decide(60.0, now=now).starts:
            heapq.heappush(ends, (now + start.seconds, start.job))

    for stream in streams:
        for _ in range(stream[3]):
            small(stream)
    decide()
    s.submit(GangJob("gang", "any", (16,)), 100.0, queue=queue, user=user)  # due at 200 s
    while "gang" not in s.running:
        now, name = heapq.heappop(ends)
        assert now <= 200.0 + 2 * 100.0
        s.finish(name, now=now)
        small(of[name])
        decide()


def test_who_is_owed_a_guarantee_of_its_own_is_not_held_for_a_gang_above() -> None:
    """Where another queue always holds its part of a guarantee, no gang has all of that, nor keeps it from others."""
    queues = {"a": 0.75, "a.b": 0.0, "a.c": 0.5, "a.d": 0.0}
    s = Scheduler(Fleet.regular(racks=1, nodes=4, gpus=4), "heuristic", patience=2.0, sharing={"queues": queues})
    s.submit(GangJob("own", "any", (8,)), 1e6, queue="a.c", now=0.0)
    s.submit(GangJob("other", "any", (4,)), 1e6, queue="", now=0.0)
    assert started(s) == {"own", "other"}
    s.submit(GangJob("gang", "any", (8,)), 10.0, queue="a.b", now=0.0)
    s.submit(GangJob("small", "any", (4,)), 1e5, queue="a.d", now=500.0)
    assert started(s) == {"small"}
