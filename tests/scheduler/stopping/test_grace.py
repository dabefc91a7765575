"""Stops with grace: who is told to stop holds its GPUs until it has, and the room is whose it is stopped for."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity
from gangplan.scheduler import Decision, Limit, Sharing
from gangplan.scheduler.journal.history import history_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

FLEET = Fleet.regular(racks=1, nodes=1, gpus=8)


def gang(name: str, gpus: int) -> GangJob:
    """Return a job."""
    return GangJob(name, "any", (gpus,))


def held(**options: object) -> Scheduler:
    """Return a scheduler where "a" on 4 of 8 GPUs was told to stop within 60 s for "x", which takes 2 idle ones too."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0, **options)  # type: ignore[arg-type]
    scheduler.submit(gang("a", 4), 3600.0, now=0.0, grace=60.0)
    scheduler.submit(gang("b", 2), 3600.0, priority=9)
    scheduler.decide(60.0)
    scheduler.submit(gang("x", 6), 1e6, now=100.0, priority=1)
    decision = scheduler.decide(60.0)
    assert (decision.stops, decision.starts) == ((), ())
    assert [(x.job, x.other, x.cause, x.seconds) for x in decision.stopping] == [("a", "x", "priority", 60.0)]
    return scheduler


def test_who_is_told_holds_its_gpus_until_it_has_stopped() -> None:
    """Nobody gets the room of "a" nor the idle GPUs that "x" is to have; once told, the next decision starts "x"."""
    scheduler = held()
    assert scheduler.running == ("b", "a") and scheduler.waiting == ("x",)
    scheduler.submit(gang("z", 2), 1.0, now=110.0, priority=9)
    assert not scheduler.decide(60.0).starts
    assert "stops in 50 s: told to by x (priority), holds its GPUs" in str(scheduler.explain("a"))
    assert scheduler.explain("x").why == "a stops for it, within 50 s"
    assert scheduler.explain("x").earliest == scheduler.wake == 160.0
    scheduler.stopped("a", now=120.0)
    starts = {x.job: x.nodes for x in scheduler.decide(60.0).starts}
    assert len(starts["x"]["node0"]) == 6 and "a" in scheduler.waiting and not scheduler.stopping


def test_who_waits_for_several_waits_for_the_last() -> None:
    """Of two that are told to stop the one with the longer grace says when the room is free."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0)
    scheduler.submit(gang("a", 4), 3600.0, now=0.0, grace=60.0)
    scheduler.submit(gang("b", 4), 3600.0, grace=30.0)
    scheduler.decide(60.0)
    scheduler.submit(gang("x", 8), 1e6, now=100.0, priority=1)
    assert {x.job for x in scheduler.decide(60.0).stopping} == {"a", "b"}
    assert str(scheduler.explain("x").why).endswith(" stop for it, within 60 s")


def test_after_the_grace_it_is_among_the_stops() -> None:
    """Who does not stop in time is stopped as without a grace, and "x" starts by the same decision."""
    scheduler = held()
    decision = scheduler.decide(60.0, now=scheduler.wake)
    assert [(x.job, x.other, x.cause) for x in decision.stops] == [("a", "x", "priority")]
    assert [x.job for x in decision.starts] == ["x"] and not decision.stopping


@pytest.mark.parametrize("ends", ["finish", "withdraw", "fail_node"])
def test_a_job_may_end_or_be_lost_while_it_stops(ends: str) -> None:
    """Whatever becomes of "a", it is told nothing more, and "x" has the room if its node is up."""
    scheduler = held()
    getattr(scheduler, ends)("node0" if ends == "fail_node" else "a", now=130.0)
    assert not scheduler.stopping
    assert [x.job for x in scheduler.decide(60.0).starts] == ([] if ends == "fail_node" else ["x"])


def test_a_price_that_changes_meanwhile_takes_no_work() -> None:
    """Who is told to stop within 60 s of 3,500 that it has left has them still when it waits again."""
    scheduler = held()
    scheduler.change("a", price=5.0, now=110.0)
    scheduler.stopped("a", now=120.0)
    request = scheduler._state.waiting["a"]
    assert request.price == 5.0 and request.left * request.seconds[0] == pytest.approx(3480.0)


def test_the_clock_is_set_back_under_a_grace() -> None:
    """Who was told at a wrong date was told when it is set back: its grace is as long as it was."""
    scheduler = held()
    scheduler.set_clock(40.0)
    assert scheduler.wake == 100.0 and scheduler.stopping[0].until == 100.0
    assert [x.job for x in scheduler.decide(60.0, now=100.0).stops] == ["a"]


def test_a_stop_is_not_taken_back() -> None:
    """If "x" is withdrawn, the job stops all the same, others get the idle GPUs at once, and it runs again later."""
    scheduler = held()
    scheduler.withdraw("x", now=110.0)
    scheduler.submit(gang("z", 2), 60.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["z"]
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["a"]


def test_who_was_not_told_has_not_stopped() -> None:
    """`stopped` of a job that runs, waits or is not known is refused by its name."""
    scheduler = held()
    for name in ("b", "x", "nobody"):
        with pytest.raises(InstanceError, match=f"job: '{name}'"):
            scheduler.stopped(name)
    with pytest.raises(InstanceError, match="grace"):
        scheduler.submit(gang("y", 1), 1.0, grace=-1.0)


def test_grace_of_the_scheduler_and_of_a_drain() -> None:
    """A drain tells as well; a job's own grace goes before the scheduler's, and 0 is none."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0, grace=30.0)
    scheduler.submit(gang("usual", 2), 3600.0, now=0.0)
    scheduler.submit(gang("none", 2), 3600.0, grace=0.0)
    scheduler.decide(60.0)
    scheduler.drain("node0", now=10.0)
    decision = scheduler.decide(60.0)
    assert [x.job for x in decision.stops] == ["none"]
    assert [(x.job, x.cause, x.seconds) for x in decision.stopping] == [("usual", "drain", 30.0)]
    assert not scheduler.decide(60.0, now=20.0).stops
    assert [x.job for x in scheduler.decide(60.0, now=40.0).stops] == ["usual"]


def test_whatif_counts_the_grace() -> None:
    """A job for which another has to stop starts at the end of its grace, and says for whom it waits."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0)
    scheduler.submit(gang("a", 8), 3600.0, now=0.0, grace=45.0)
    scheduler.decide(60.0)
    scheduler.submit(gang("gone", 8), 1.0, now=50.0)
    scheduler.withdraw("gone")
    told = scheduler.whatif(gang("new", 8), 1e6, priority=1)
    assert (told.earliest, told.stops) == (95.0, ("a (priority)",))
    assert scheduler.decide(60.0, now=50.0).stopping == ()


def test_a_claim_counts_against_limits() -> None:
    """While ann's job stops for her other one, a third of hers does not take what she may hold."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0, sharing=Sharing(limits={"ann": 4}))
    scheduler.submit(gang("a", 4), 3600.0, now=0.0, user="ann", grace=60.0)
    scheduler.decide(60.0)
    scheduler.submit(gang("x", 4), 1e6, now=100.0, user="ann", priority=1)
    assert [x.job for x in scheduler.decide(60.0).stopping] == ["a"]
    scheduler.submit(gang("z", 2), 1.0, now=101.0, user="ann", priority=2)
    assert not scheduler.decide(60.0).starts
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["x"]


@pytest.mark.parametrize("sharing", [{"limits": {"ann": 4}}, {"queues": {"q": {"most": 0.5}, "p": 0.5}}])
def test_who_stops_counts_against_limits_until_it_has(sharing: dict[str, object]) -> None:
    """While ann's four GPUs are to be freed for another's job, one of hers that waits takes none beside them."""
    queues = "queues" in sharing
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=2, gpus=4), "heuristic", price=0.0, sharing=sharing)
    scheduler.submit(gang("a", 4), 3600.0, now=0.0, user="ann", grace=60.0, queue="q" * queues)
    scheduler.submit(gang("b", 2), 3600.0, queue="p" * queues, price=None)  # type: ignore[arg-type]
    scheduler.decide(60.0)
    scheduler.submit(gang("x", 4), 1e6, now=100.0, priority=1, queue="p" * queues, together=True)
    assert [x.job for x in scheduler.decide(60.0).stopping] == ["a"]
    scheduler.submit(gang("z", 2), 1.0, now=110.0, user="ann", queue="q" * queues)
    assert not scheduler.decide(60.0).starts
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["x", "z"]


def test_cores_are_kept_for_who_needs_more_than_who_stops() -> None:
    """Of 16 cores "a" holds 4 and "x" is to have 12: a task gets 4 meanwhile and no 8."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=4, cpu=16.0), "heuristic", price=0.0)
    scheduler.submit(GangJob("a", "any", (4,), Demand(cpu=1)), 3600.0, now=0.0, grace=60.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("x", "any", (4,), Demand(cpu=3)), 1e6, now=100.0, priority=1)
    assert [x.job for x in scheduler.decide(60.0).stopping] == ["a"]
    for cores in (8, 4):
        scheduler.submit(GangJob(f"task{cores}", "any", (1,), Demand(gpu=0, cpu=cores)), 1e6, priority=2)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["task4"]
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["x"]


@pytest.mark.parametrize(("mine", "others"), [(("z",), ()), ((), ("x",))])
def test_who_shares_no_node_with_another_does_not_come_to_its_room(mine: tuple[str], others: tuple[str]) -> None:
    """On the node where "a" stops for "x", "z" has room in the meantime, and one of them is to be apart."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0)
    scheduler.submit(gang("a", 4), 3600.0, now=0.0, grace=60.0)
    for name in ("b", "c"):
        scheduler.submit(gang(name, 2), 3600.0, priority=9)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("x", "any", (4,), apart=mine), 1e6, now=100.0, priority=1)
    assert [x.job for x in scheduler.decide(60.0).stopping] == ["a"]
    scheduler.finish("b", now=110.0)
    scheduler.submit(GangJob("z", "any", (2,), apart=others), 1e5, priority=2)
    assert not scheduler.decide(60.0).starts
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["x"]


@pytest.mark.parametrize(("begin", "told"), [(185.0, []), (195.0, ["a"])])
def test_nobody_is_told_to_stop_if_nodes_close_before_the_other_would_end(begin: float, told: list[str]) -> None:
    """At the end of its grace, in 60 s, "x" takes 30 s."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0)
    scheduler.submit(gang("a", 8), 3600.0, now=0.0, grace=60.0)
    scheduler.decide(60.0)
    scheduler.drain("node0", begin)
    scheduler.submit(gang("x", 8), 30.0, now=100.0, priority=1)
    assert [x.job for x in scheduler.decide(60.0).stopping] == told
    assert [x.job for x in scheduler.decide(60.0, now=160.0).starts] == ["x"] * len(told)


def test_who_has_waited_for_a_place_does_not_wait_for_a_closer_one() -> None:
    """A node that is repaired meanwhile, and taken, would be closer for all eight workers of "x"."""
    speeds = Proximity(0.01, 1.0, 1.0, intensity={"any": 1.0})
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=3, gpus=(4, 4, 8)), "patient", speeds=speeds, price=0.0)
    scheduler.fail_node("node2", now=0.0)
    scheduler.submit(gang("a", 4), 3600.0, grace=60.0)
    scheduler.submit(gang("b", 1), 3600.0)
    scheduler.decide(60.0)
    scheduler.finish("b", now=100.0)
    scheduler.submit(gang("x", 8), 1e5, priority=1)
    assert [x.job for x in scheduler.decide(60.0).stopping] == ["a"]
    scheduler.repair_node("node2", now=110.0)
    scheduler.submit(GangJob("y", "any", (8,), whole_nodes=True), 1e5, priority=2)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["y"]
    scheduler.stopped("a", now=120.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["x"]


def test_moves_wait_for_the_stop() -> None:
    """What `defragment` proposes of a job with grace is done once it has stopped."""
    scheduler = Scheduler(Fleet.regular(racks=2, nodes=1, gpus=4), price=60.0, grace=30.0)
    for name in ("a", "pad", "b"):
        scheduler.submit(gang(name, 2), 7200.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.finish("pad", now=600.0)
    moves = scheduler.defragment(gang=gang("new", 4))
    assert moves is not None
    decision, job = scheduler.apply(moves), moves.moves[0]
    assert [x.job for x in decision.stopping] == [job.job] and not (decision.stops or decision.starts)
    assert not scheduler.decide(60.0).starts
    scheduler.stopped(job.job, now=610.0)
    assert [(x.job, dict(x.nodes)) for x in scheduler.decide(60.0).starts] == [(job.job, dict(job.to))]


def test_nobody_moves_if_nodes_close_in_the_time_that_the_stop_takes() -> None:
    """A job that would end after 7,260 s elsewhere ends there 30 s later, which is after nodes close."""
    for begin, moves in ((7280.0, 0), (7295.0, 1)):
        scheduler = Scheduler(Fleet.regular(racks=2, nodes=1, gpus=4), price=60.0, grace=30.0)
        for name in ("a", "pad", "b"):
            scheduler.submit(gang(name, 2), 7200.0, now=0.0)
        scheduler.decide(60.0)
        scheduler.finish("pad", now=600.0)
        for node in (0, 1):
            scheduler.drain(node, begin)
        proposal = scheduler.defragment(gang=gang("new", 4))
        assert len(proposal.moves if proposal else ()) == moves
        if proposal:
            scheduler.apply(proposal)
            assert [x.job for x in scheduler.decide(60.0, now=630.0).starts] == [proposal.moves[0].job]


def checked(scheduler: Scheduler, decision: Decision, seats: dict[str, dict[str, set[int]]], told: dict[str, float]):
    """Follow a decision in books of its own: nobody starts on a GPU that another holds."""
    for stop in decision.stops:
        assert told.pop(stop.job, decision.now) <= decision.now
        del seats[stop.job]
    for stop in decision.stopping:
        assert stop.job not in told and stop.job in seats
        told[stop.job] = stop.since + stop.seconds
    for start in decision.starts:
        mine = {node: set(gpus) for node, gpus in start.nodes.items()}
        taken = [x for x in seats.values() for node in mine if mine[node] & x.get(node, set())]
        assert start.job not in seats and not taken
        seats[start.job] = mine
    assert {*scheduler.running} == {*seats} and {x.job for x in scheduler.stopping} == {*told}


def random_day(seed: int, log: Path, events: int) -> tuple[Scheduler, Counter[str]]:
    """Play random events with grace, and follow them; return the scheduler and what happened how often."""
    rng, seen = random.Random(seed), Counter[str]()
    fleet = Fleet.regular(racks=2, nodes=2, gpus=4, cpu=16.0)
    sharing = Sharing(queues={"p": 0.5, "q": 0.25}, limits={"*": 10}, least_run=5.0, most_run=400.0)
    shared = rng.random() < 0.5
    policy = rng.choice(["heuristic", "hybrid"])
    scheduler = Scheduler(fleet, policy, price=rng.choice([0.0, 20.0]), sharing=sharing if shared else None, log=log,
                          grace=rng.choice([0.0, 15.0]))  # fmt: skip
    seats, told, now = dict[str, dict[str, set[int]]](), dict[str, float](), 0.0
    for i in range(events):
        now += rng.expovariate(0.1)
        pick = rng.random()
        if pick < 0.55 and len(scheduler.waiting) < 12:
            terms = {"priority": rng.choice([0, 0, 1, 2])} | ({"queue": rng.choice(["p", "q", ""])} if shared else {})
            job = GangJob(f"j{i}", "any", (rng.choice([1, 2, 4, 6, 8]),), Demand(cpu=rng.choice([0, 1, 3])))
            grace, seconds = rng.choice([None, 0.0, 10.0, 60.0]), rng.choice([20.0, 200.0, 900.0])
            scheduler.submit(job, seconds, now=now, grace=grace, user=rng.choice("uv"), **terms)
        elif pick < 0.7 and scheduler.running:
            name = rng.choice(scheduler.running)
            scheduler.finish(name, now=now)
            seats.pop(name), told.pop(name, None)
        elif pick < 0.78 and scheduler.stopping:
            name = rng.choice(scheduler.stopping).job
            scheduler.stopped(name, now=now)
            seats.pop(name), told.pop(name)
        elif pick < 0.82 and scheduler.waiting:
            scheduler.withdraw(rng.choice(scheduler.waiting), now=now)
        elif pick < 0.86:
            node = f"node{rng.randrange(4)}"
            up = scheduler._state.up[int(node[-1])]
            for name in scheduler.fail_node(node, now=now) if up else scheduler.repair_node(node, now=now) or ():
                seats.pop(name), told.pop(name, None)
        decision = scheduler.decide(60.0, now=now)
        seen.update(starts=len(decision.starts), stops=len(decision.stops), told=len(decision.stopping))
        checked(scheduler, decision, seats, told)
        if i % 40 == 0:
            saved = json.loads(json.dumps(scheduler.snapshot()))
            scheduler.checkpoint()
            assert json.loads(json.dumps(scheduler.snapshot())) == saved
    return scheduler, seen


def test_who_is_told_to_stop_holds_the_same_after_a_restart() -> None:
    """A snapshot that was JSON gives the very seats back, and the stop that follows has them."""
    scheduler, again = held(), held()
    again.restore(json.loads(json.dumps(scheduler.snapshot())))
    assert again.stopping == scheduler.stopping
    assert again.decide(60.0, now=160.0).stops == scheduler.decide(60.0, now=160.0).stops


@pytest.mark.parametrize("seed", range(2))
def test_random_days_with_grace(seed: int, tmp_path: Path) -> None:
    """No GPU is given twice, and the log of each day leads to the same bytes, decided again or not."""
    path = tmp_path / "log.jsonl"
    scheduler, seen = random_day(seed, path, 80)
    state = scheduler.snapshot()
    del scheduler
    assert seen["told"] and seen["starts"] > 10
    assert replay(read_log(path), check=True).snapshot() == state
    opened = Scheduler.open(path)
    assert json.dumps(opened.snapshot()) == json.dumps(state)
    past = history_of(read_log(path))
    assert play(past, Scheduler(past.fleet, "heuristic", price=0.0, grace=5.0)).decisions


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_many_random_days_with_grace(seed: int, tmp_path: Path) -> None:
    """The same for many days."""
    test_random_days_with_grace(1000 + seed, tmp_path)


def test_claims_of_one_limit_start_in_their_order() -> None:
    """`mine` stops early and has room again: what its user's limit leaves is `first`'s, for which it stopped."""
    sharing = Sharing(limits={"u": Limit(gpus=6)})
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic", sharing=sharing, price=0.0, grace=5.0)
    s.submit(GangJob("other", "m", (3,)), 1000.0, now=0.0)
    s.decide(60.0, now=0.0)
    s.submit(GangJob("mine", "m", (1,), apart=("other",)), 1000.0, now=0.0, user="u")
    s.decide(60.0, now=0.0)
    s.submit(GangJob("first", "m", (4,), most_per_node=3), 10.0, now=10.0, priority=1, user="u")
    assert {x.job for x in s.decide(60.0, now=10.0).stopping} == {"mine", "other"}
    s.stopped("mine", now=11.0)
    assert s.decide(60.0, now=11.0).starts == ()
    s.stopped("other", now=12.0)
    assert [x.job for x in s.decide(60.0, now=12.0).starts][:2] == ["first", "mine"]
