"""Who is stopped for whom: lower classes, those that ran their most, and who holds more than a share."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.instances.verify.actions import Preempted, verify_preemption
from gangplan.scheduler.stopping import preemption


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


@pytest.mark.parametrize("sharing", [{}, {"preempt": False}])
def test_nobody_stops_for_who_preempts_nobody(sharing: dict[str, object]) -> None:
    """Neither its class nor what a stop gains has others stop for such a job; its like behind it has them stop."""
    scheduler = Scheduler(Fleet.regular(1, 1, 2), price=0.0, sharing=sharing)
    scheduler.submit(GangJob("long", "any", (2,)), 1e6, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("calm", "any", (2,)), 10.0, now=10.0, priority=1, preempts=False)
    assert not scheduler.decide(60.0).stops
    scheduler.submit(GangJob("new", "any", (2,)), 9.0, now=20.0, priority=1)
    assert [stop.job for stop in scheduler.decide(60.0).stops] == ["long"]


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
    monkeypatch.setattr("gangplan.scheduler.stopping.preemption.SECONDS", 30.0)  # on a busy machine, too
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
        ({"ran": 59.0}, "at least"), ({"held": 0.5}, "is owed"), ({"asks": 0.36}, "does not let it"),
        ({"cause": "priority"}, "does not let it"), ({"cause": "turn", "same_queue": True}, "does not let it"),
    ):  # fmt: skip
        wrong = verify_preemption(replace(fine, **changes), {"a"})
        assert any(words in line for line in wrong), (changes, wrong)


def scheduler_of(nodes: int, gpus: int, price: float = 10.0, **sharing: object) -> Scheduler:
    """Return a scheduler that stops jobs for others only; one node has the label x."""
    fleet = Fleet.regular(racks=1, nodes=nodes, gpus=gpus, labels={"x": [0]})
    return Scheduler(fleet, "heuristic", order=0.0, price=price, sharing=sharing)


def enter(scheduler: Scheduler, name: str, gpus: int, seconds: float, now: float, **terms: object) -> None:
    """Submit a job of one GPU a worker."""
    scheduler.submit(GangJob(name, "any", (gpus,)), seconds, now=now, **terms)  # type: ignore[arg-type]


def test_others_move_for_a_job_that_is_owed_room() -> None:
    """On each node is a job within its queue's guarantee, so stops of borrowers clear none: one of them moves."""
    s = scheduler_of(2, 4, queues={"a": 0.5, "b": 0.25, "c": 0.25})
    for now, (name, gpus) in enumerate([("b0", 1), ("c0", 3), ("b1", 1), ("c1", 3)]):
        enter(s, name, gpus, 9000.0, float(now), queue=name[0])
        s.decide(60.0)
    enter(s, "whole", 4, 5000.0, 20.0, queue="a")
    decision = s.decide(60.0)
    # c holds 6 GPUs of its 2: one of its jobs stops for the gang, the other one for the job of b that goes there
    moves = [x for x in decision.stops if x.cause == "move"]
    assert [x.other for x in moves] == ["whole"]
    assert {x.job for x in decision.starts} == {"whole", moves[0].job}
    assert {(x.job[0], x.cause) for x in decision.stops if x not in moves} == {("c", "reclaim")}
    assert {*s.running} == {"whole", "b0", "b1"}
    assert "1 of them at once elsewhere" in " ".join(str(s.explain(decision)).split())


def test_nobody_moves_for_a_job_that_borrows() -> None:
    """Nobody makes room for a job that takes its queue over its guarantee, and all run on."""
    s = scheduler_of(2, 4, queues={"a": 0.25, "b": 0.75})
    for name in ("b0", "b1"):
        enter(s, name, 3, 9000.0, 0.0, queue="b")
    s.decide(60.0)
    before = s.running
    enter(s, "wide", 4, 5000.0, 20.0, queue="a")
    assert not s.decide(60.0).stops
    assert s.running == before


def test_the_cheapest_of_a_queue_above_its_share_stops_whoever_came_first() -> None:
    """The first job that came has the least left: it stops, and no set costs less."""
    s = scheduler_of(4, 2, queues={"a": 0.5, "b": 0.5})
    for i, seconds in enumerate((100.0, 9000.0, 9000.0, 9000.0)):
        enter(s, f"x{i}", 2, seconds, 0.0, queue="a")
    s.decide(60.0)
    enter(s, "y", 2, 500.0, 50.0, queue="b")
    decision = s.decide(60.0)
    assert [x.job for x in decision.stops] == ["x0"]
    assert "no set costs less\n" in str(s.explain(decision))


def test_room_is_reclaimed_on_the_nodes_that_a_job_may_use() -> None:
    """The only job on an H100 stops, though the one on an A100 came later."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=2, gpu_type={"A100": 1, "H100": 1})
    s = Scheduler(fleet, "heuristic", price=10.0, sharing={"queues": {"a": 0.5, "b": 0.5}})
    for name, kind in (("old", "H100"), ("new", "A100")):
        s.submit(GangJob(name, "any", (2,), gpu_types=(kind,)), 9000.0, now=0.0, queue="a")
    s.decide(60.0)
    s.submit(GangJob("y", "any", (2,), gpu_types=("H100",)), 500.0, now=50.0, queue="b")
    assert causes(s.decide(60.0)) == [("old", "y", "reclaim")]


def test_room_is_reclaimed_from_a_queue_that_borrows_in_the_same_decision() -> None:
    """Another of that queue takes room elsewhere: the one that is owed its share has it at once."""
    s = scheduler_of(2, 4, queues={"a": 0.5, "b": 0.5})
    s.submit(GangJob("a1", "any", (4,), requires=("x",)), 9000.0, now=0.0, queue="a")
    enter(s, "b1", 4, 9000.0, 0.0, queue="b")
    s.decide(60.0)
    s.finish("b1", now=100.0)
    enter(s, "a2", 4, 900.0, 100.0, queue="a")
    s.submit(GangJob("b2", "any", (1,), requires=("x",)), 100.0, queue="b")
    assert causes(s.decide(60.0)) == [("a1", "b2", "reclaim")]


def test_searches_in_vain_do_not_keep_a_later_borrower_from_giving_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only search that is allowed finds nothing on the H100; then its job's queue borrows elsewhere: a new one."""
    monkeypatch.setattr(preemption, "SEARCHES", 1)
    fleet = Fleet.regular(racks=1, nodes=2, gpus=4, gpu_type={"A100": 1, "H100": 1})
    s = Scheduler(fleet, "heuristic", price=0.0, sharing={"queues": {"a": 0.5, "b": 0.5, "c": 0.0}})
    for name, workers, kind, queue in (("b1", 4, "H100", "b"), ("c1", 1, "A100", "c")):
        s.submit(GangJob(name, "any", (workers,), gpu_types=(kind,)), 9000.0, now=0.0, queue=queue)
    s.decide(60.0)
    s.submit(GangJob("a1", "any", (1,), gpu_types=("H100",)), 500.0, now=100.0, queue="a")
    s.submit(GangJob("b2", "any", (1,), gpu_types=("A100",)), 9000.0, now=100.0, queue="b")
    assert causes(s.decide(60.0)) == [("b1", "a1", "reclaim")]


def test_nobody_stops_for_a_gain_of_who_stopped_in_the_same_decision() -> None:
    """A higher class takes the queue over its share, and the job that stops for it is shorter than one that runs on."""
    s = scheduler_of(2, 8, queues={"a": 0.75})
    s.submit(GangJob("short", "any", (6,)), 500.0, now=0.0, queue="a", priority=-1)
    enter(s, "long", 6, 5000.0, 0.0, queue="a", priority=-1)
    s.decide(60.0)
    s.submit(GangJob("high", "any", (8,), requires=("x",)), 2000.0, now=100.0, queue="a")
    assert causes(s.decide(60.0)) == [("short", "high", "priority")]


@pytest.mark.parametrize("terms", [{"queue": "b"}, {"queue": "a", "priority": 5}])
def test_a_closed_node_is_no_room(terms: dict[str, object]) -> None:
    """A drained node has free GPUs that nobody may have: others stop all the same."""
    s = scheduler_of(3, 8, queues={"a": 0.5, "b": 0.5})
    s.drain("node2")
    for i in range(2):
        enter(s, f"x{i}", 8, 1000.0, 0.0, queue="a")
    s.decide(60.0)
    enter(s, "y", 8, 5000.0, 100.0, **terms)
    assert [x.job for x in s.decide(60.0).starts] == ["y"]


def test_no_more_stop_than_a_queue_at_its_most_needs() -> None:
    """With 6 GPUs of at most 6, 2 and 4, a job of 4 has the one of 4 stopped; the one of 2 runs on."""
    s = scheduler_of(3, 4, price=60.0, queues={"b": {"share": 0.0, "most": 0.5}})
    enter(s, "small", 2, 150.0, 0.0, queue="b")
    enter(s, "wide", 4, 1000.0, 0.0, queue="b")
    s.decide(60.0)
    enter(s, "top", 4, 50.0, 100.0, queue="b", priority=1)
    assert causes(s.decide(60.0)) == [("wide", "top", "priority")]


def test_own_and_others_stop_for_a_queue_at_its_most() -> None:
    """For its most one of its own jobs has to go, for the room one of a queue above its share."""
    s = scheduler_of(4, 2, price=5.0, queues={"q": {"share": 0.0, "most": 0.5}, "r": 0.125, "o": 0.5})
    rows = [("j2", 2, 900.0, "r", 0), ("j3", 1, 950.0, "r", 1), ("j1", 1, 1000.0, "q", 0), ("j5", 2, 5000.0, "o", 1)]
    for now, (name, gpus, seconds, queue, priority) in enumerate(rows):
        enter(s, name, gpus, seconds, float(now), queue=queue, priority=priority)
        s.decide(60.0)
    enter(s, "top", 4, 2000.0, 61.0, queue="q", priority=1)
    decision = s.decide(60.0)
    assert {x.job for x in decision.stops} == {"j1", "j2"}
    assert [x.job for x in decision.starts] == ["top"]


@pytest.mark.parametrize(
    ("sharing", "queue"),
    [
        ({"queues": {"own": {"share": 0.5, "lends": 0.0}, "other": 0.25}}, {"queue": "other"}),
        ({"limits": {"ann": {"gpus": 4}}}, {}),
    ],
)
def test_a_lower_class_makes_room_within_a_limit(sharing: dict[str, object], queue: dict[str, str]) -> None:
    """What others do not lend, or the user's limit, is held by a job of a lower class of the same queue or user."""
    s = scheduler_of(2, 4, **sharing)
    enter(s, "low", 4, 9000.0, 0.0, user="ann", **queue)
    s.decide(60.0)
    enter(s, "high", 4, 9500.0, 100.0, user="ann", priority=5, **queue)
    assert causes(s.decide(60.0)) == [("low", "high", "priority")]


def test_equal_victims_after_a_restart() -> None:
    """Which of two equal jobs stops does not depend on what ran and ended before."""
    s = scheduler_of(1, 4, price=5.0)
    for name, level in (("done", 1), ("a", 0), ("b", 0)):
        enter(s, name, 1, 500.0, 0.0, priority=level)
    s.decide(60.0)
    s.finish("done")
    for i in range(3):
        enter(s, f"high{i}", 1, 500.0, 50.0, priority=1)
    other = scheduler_of(1, 4, price=5.0)
    other.restore(json.loads(json.dumps(s.snapshot())))
    assert [x.job for x in s.decide(60.0).stops] == [x.job for x in other.decide(60.0).stops] == ["a"]


def test_no_turn_for_a_job_that_was_due() -> None:
    """A job that was due when it started runs to its end, but for higher classes and guarantees."""
    s = Scheduler(Fleet.regular(racks=1, nodes=1), "heuristic", price=1.0, patience=1.0, sharing={"most_run": 50.0})
    enter(s, "block", 8, 2000.0, 0.0)
    s.decide(60.0)
    enter(s, "d", 8, 100.0, 0.0)
    s.finish("block", now=150.0)
    assert [x.tier for x in s.decide(60.0).starts] == ["due"]
    enter(s, "e", 8, 1e5, 160.0)
    assert not s.decide(60.0, now=201.0).stops


def test_a_limit_holds_after_stops_are_taken_back() -> None:
    """A start that the stop of the user's other job allowed is taken back with that stop."""
    fleet = Fleet.regular(racks=1, nodes=5, gpus=2)
    sharing = {"limits": {"u": {"jobs": 1}}, "least_run": 10.0}
    s = Scheduler(fleet, "heuristic", price=5.0, order=0.0, reserve=False, sharing=sharing)
    enter(s, "j3", 2, 100.0, 6.5, user="u")
    s.decide(60.0)
    enter(s, "j5", 2, 100.0, 36.5, together=False, priority=1)
    enter(s, "j8", 2, 10.0, 152.5)
    enter(s, "j9", 2, 1.0, 152.5)
    enter(s, "j10", 4, 50.0, 152.5, together=False, user="w")
    enter(s, "j11", 1, 10.0, 152.5)
    enter(s, "j15", 2, 50.0, 169.5, user="u")
    for now in (171.0, 271.0):
        s.decide(600.0, now=now)
        assert not {"j3", "j15"} <= {*s.running}


@pytest.mark.filterwarnings("error")
def test_tasks_without_gpus_stop_where_that_helps() -> None:
    """Cores for a higher class, for a guarantee, or on a node that is drained; nobody gains by their GPUs."""
    fleet, cores = Fleet.regular(1, 1, 2, cpu=8.0), Demand(gpu=0, cpu=4)
    for queues, queue, priority, cause in (
        ({}, "", 1, "priority"), ({"a": 0.5, "b": 0.5}, "b", 0, "reclaim"), ({}, "", 0, "")
    ):  # fmt: skip
        s = Scheduler(fleet, price=5.0, sharing={"queues": queues})
        s.submit(GangJob("long", "any", (2,), cores), 9000.0, now=0.0, queue="a" if queues else "")
        s.decide(60.0)
        s.submit(GangJob("task", "any", (1,), cores), 10.0, now=100.0, queue=queue, priority=priority)
        assert [x.cause for x in s.decide(60.0).stops] == [cause] * bool(cause)
        s.drain("node0")
        assert not s.decide(60.0, now=200.0).starts and not s.running


@pytest.mark.filterwarnings("error")
def test_a_task_without_gpus_is_no_victim_where_it_does_not_help() -> None:
    """It is in nobody's way; the job of a lower class stops."""
    s = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=2), "heuristic", price=5.0)
    s.submit(GangJob("load", "any", (1,), Demand(gpu=0, cpu=4)), 500.0, now=0.0)
    s.submit(GangJob("low", "any", (2,)), 500.0, now=0.0)
    s.decide(60.0)
    s.submit(GangJob("high", "any", (2,)), 600.0, now=100.0, priority=1)
    assert [(x.job, x.cause) for x in s.decide(60.0).stops] == [("low", "priority")]


def test_others_stop_for_the_fewest_workers_where_a_limit_keeps_more() -> None:
    """Of eight GPUs four are owed to "b" and two are what bob may have; six workers are tried after one."""
    s = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=8), "heuristic", price=1.0,
                  sharing={"queues": {"a": 0.0, "b": 0.5}, "limits": {"bob": 2}})  # fmt: skip
    for i in range(8):
        s.submit(GangJob(f"a{i}", "any", (1,)), 1e6, now=0.0, queue="a")
    s.decide(60.0)
    s.submit(GangJob("job", "any", (1, 6)), [2e5, 1e5], now=100.0, queue="b", user="bob")
    assert [(x.other, x.cause) for x in s.decide(60.0).stops] == [("job", "reclaim")]
