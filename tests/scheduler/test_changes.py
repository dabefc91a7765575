"""Jobs of which something else is said, and nodes that come and go."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.placement import Fleet, GangJob, Proximity
from gangplan.scheduler import RunsNow, Scheduler, WaitingJob
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay


def one(name: str, workers: int = 1) -> GangJob:
    """Return a job of so many GPUs."""
    return GangJob(name, "any", (workers,))


def busy(price: float | None = None) -> Scheduler:
    """Return a scheduler of two GPUs: `a` runs since 0 on both for 100 s; `b` of 50 s and `c` of 40 s wait."""
    s = Scheduler(Fleet.regular(1, 1, 2), "heuristic", price=price)
    s.submit(one("a", 2), 100.0, now=0.0)
    s.decide(60.0)
    s.submit(one("b", 2), 50.0)
    s.submit(one("c", 2), 40.0)
    return s


def started(s: Scheduler) -> list[str]:
    """Return who starts."""
    return [start.job for start in s.decide(60.0).starts]


def test_a_waiting_job_changes_its_place() -> None:
    """With 30 s it is before the other one, and is due when it was."""
    s = busy()
    due = s._state.waiting["b"].due
    s.change("b", 30.0, title="quick")
    s.finish("a", now=100.0)
    assert s._state.waiting["b"].due == due and s._state.waiting["b"].terms.title == "quick"
    assert started(s) == ["b"] and s._state.running["b"].end == 130.0


def test_no_price_is_never_stopped() -> None:
    """`None` has one meaning in `submit`, `submit_array`, `whatif` and `change`; by default it is as before."""
    s = Scheduler(Fleet.regular(1, 1, 8), "heuristic", price=60.0)
    s.submit(one("usual", 1), 100.0, now=0.0)
    s.submit(one("own", 1), 100.0, price=5.0)
    s.submit(one("never", 1), 100.0, price=None)
    s.submit_array(one("none", 1), 1, 100.0, price=None)
    s.submit(one("later", 1), 100.0)
    s.change("later", price=None)
    s.change("own", 90.0, price=...)
    prices = {name: request.price for name, request in s._state.waiting.items()}
    assert prices == {"usual": 60.0, "own": 5.0, "never": None, "none[0]": None, "later": None}


def test_a_running_job_changes_its_end() -> None:
    """After 60 of 100 s it says that it takes 10 more: reservations, explanations and what is left of it follow."""
    s = busy(price=1.0)
    s.change("a", 10.0, now=60.0)
    told = s.explain("a")
    assert isinstance(told, RunsNow) and told.left == 10.0 and s._state.running.by_end == [(70.0, 0, "a")]
    assert s.explain("c").earliest == 70.0  # type: ignore[union-attr]
    # stopped at 65, it has 5 s left of its 100, and has got on for 65 on two GPUs
    s.drain("node0", now=65.0)
    s.decide(60.0)
    request = s._state.waiting["a"]
    assert request.lasts(2) == 5.0 + 1.0 and request.done == 65.0 * 2
    assert request.due == 50 * 100.0 + 65.0  # later by what it ran


def test_a_running_job_may_not_be_stopped_any_more() -> None:
    """With the price it is stopped for a short one; without it is not, and the other way round."""
    for before, after in ((1.0, None), (None, 1.0)):
        s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", price=before)
        s.submit(one("long"), 1e4, now=0.0)
        s.decide(60.0)
        s.change("long", price=after, now=100.0)
        s.submit(one("short"), 10.0, now=200.0)
        assert started(s) == ([] if after is None else ["short"])
        assert s._state.running.stoppable == 0  # the long one, or in its place one of the scheduler, which has no price


def test_a_price_that_was_paid_is_not_paid_again() -> None:
    """It stopped at 100 with 900 s left, pays 50 s from 110 on; a new price at 130 leaves its end at 1060."""
    s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", price=50.0)
    s.submit(one("long"), 1000.0, now=0.0)
    s.decide(60.0)
    s.submit(one("short"), 10.0, now=100.0)
    assert started(s) == ["short"]
    s.finish("short", now=110.0)
    assert started(s) == ["long"]
    s.change("long", price=7.0, now=130.0)
    job = s._state.running["long"]
    assert job.end == 1060.0 and job.settled == 137.0
    s.drain("node0", now=1000.0)
    s.decide(60.0)
    assert s._state.waiting["long"].lasts(1) == pytest.approx(60.0 + 7.0)


def test_a_waiting_job_may_be_held_back() -> None:
    """It is passed by the other one until its new begin, and comes after it once that is said."""
    s = busy()
    s.change("c", begin=150.0)
    s.finish("a", now=100.0)
    assert started(s) == ["b"] and s.wake == 150.0
    s.change("c", begin=0.0, after=("b",))
    assert s.wake is None and s.waiting == ("c",)
    s.finish("b", now=160.0)
    assert started(s) == ["c"]


def test_who_leaves_an_array_for_later_makes_room_in_it() -> None:
    """The next of the array runs in its place, and it comes when its time has come and there is a turn."""
    s = Scheduler(Fleet.regular(1, 1, 4), "heuristic")
    s.submit_array(one("a"), 3, 10.0, most=1, now=0.0)
    s.change("a[0]", begin=5.0)
    assert started(s) == ["a[1]"]
    s.finish("a[1]", now=10.0)
    assert started(s) == ["a[2]"]
    s.finish("a[2]", now=20.0)
    assert started(s) == ["a[0]"]


def test_a_job_of_no_seconds_gets_some() -> None:
    """It was to end at once; now it runs for 5 s more, and as a fourth as many workers for 20."""
    s = Scheduler(Fleet.regular(1, 1, 4), "heuristic")
    s.submit(GangJob("a", "any", (1, 4)), (0.0, 0.0), now=0.0)
    s.decide(60.0)
    degree = s._state.running["a"].degree
    s.change("a", 5.0)
    assert s._state.running["a"].request.seconds == tuple(5.0 * degree / d for d in (1, 4))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("d", {}, "'d' does not wait: it is not known"),
        ("a", {"seconds": -1.0}, "seconds: -1.0 is negative"),
        ("a", {"seconds": [1.0]}, r"seconds: \[1.0\] is not a number"),
        ("a", {"begin": 9.0}, "begin: 9.0 comes too late: 'a' runs"),
        ("a", {"after": ("b",)}, r"after: \('b',\) comes too late"),
        ("b", {"seconds": "x"}, "seconds: 'x'"),
        ("b", {"price": -1.0}, "price: -1.0"),
        ("b", {"after": ("z",)}, "after: 'z' is not known"),
        ("b", {"titel": "x"}, "titel: is no argument; did you mean title"),
        ("b", {"now": -1.0}, "now: -1.0"),
        ("b", {"within": "nonsense"}, "within: 'nonsense' is no level"),
        ("a", {"within": "nonsense"}, "within: 'nonsense' is no level"),
        ("b", {"group": 3}, "group: 3 does not divide 2"),
        ("b", {"array": "x"}, "array: 'x' comes too late: 'b' waits"),
        ("b", {"seconds": {"H100": 1.0}}, "seconds: 'H100' is no GPU type"),
        ("a", {"seconds": {"H100": 1.0}}, "seconds: .* is not a number"),
    ],
)
def test_changes_that_are_refused(name: str, options: dict[str, object], words: str) -> None:
    """An error names the field, and nothing has changed."""
    s = busy()
    before = s.snapshot()
    with pytest.raises(InstanceError, match=words):
        s.change(name, **options)  # type: ignore[arg-type]
    assert s.snapshot() == before


def test_a_change_to_a_queue_that_is_too_small() -> None:
    """Two GPUs of two are more than a tenth: the change is refused of a job that waits, is held or runs."""
    s = Scheduler(Fleet.regular(1, 1, 2), sharing={"queues": {"a": 0.5, "b": {"share": 0.0, "most": 0.1}}})
    for name, begin in (("runs", 0.0), ("waits", 0.0), ("held", 9.0)):
        s.submit(one(name, 2), 50.0, now=0.0, queue="a", begin=begin)
    s.decide(60.0)
    before = s.snapshot()
    for name in ("runs", "waits", "held"):
        with pytest.raises(InstanceError, match="never may start: queue b"):
            s.change(name, queue="b", now=1.0)
        assert s.snapshot() == before


def test_a_running_job_stays_where_it_may_be() -> None:
    """A GPU is left in each rack, and it has both: that they are to be in one rack, or on one node, comes too late."""
    s = Scheduler(Fleet.regular(2, 1, 4), "heuristic")
    for name in "xy":
        s.submit(one(name, 3), 50.0, now=0.0)
    s.submit(one("a", 2), 60.0, together=False)
    assert started(s)[-1] == "a"
    before = s.snapshot()
    for terms in ({"within": "rack"}, {"group": 2}):
        with pytest.raises(InstanceError, match=f"{next(iter(terms))}: comes too late"):
            s.change("a", **terms)  # type: ignore[arg-type]
        assert s.snapshot() == before


@pytest.mark.parametrize("held", [False, True])
def test_what_is_changed_is_what_is_placed(held: bool) -> None:
    """Two GPUs are free in each rack: a job of four that need not be in one any more starts, as after a restore."""
    s = Scheduler(Fleet.regular(2, 2, 4), "heuristic")
    for i in range(8):
        s.submit(one(f"x{i}", 2), 100.0, now=0.0)
    s.decide(60.0)
    s.submit(one("w", 4), 50.0, now=0.0, together=False, within="rack", begin=1.5 if held else 0.0)
    s.decide(60.0)
    s.change("w", within="", now=1.0)
    for rack in (0, 1):
        s.finish(next(name for name, job in s._state.running.items() if min(job.nodes) // 2 == rack), now=2.0)
    again = Scheduler(Fleet.regular(2, 2, 4), "heuristic")
    again.restore(s.snapshot())
    assert started(s) == started(again) == ["w"]


def test_a_name_that_was_asked_about_is_placed_as_it_comes() -> None:
    """Of a gang that `defragment` was asked about nothing is kept: one of its name may be in one rack only."""
    s = Scheduler(Fleet.regular(2, 1, 2), "heuristic")
    s.defragment(gang=one("w", 2))
    s.submit(GangJob("w", "any", (2,), whole_nodes=True), 1.0, now=0.0)
    assert s._state.placed(s._state.waiting["w"], 2).whole_nodes


def test_seconds_by_type_change(tmp_path: Path) -> None:
    """It takes 600 s on a type that it may use now only, as if it had come so; a log says the same."""
    log = tmp_path / "log.jsonl"
    s = Scheduler(Fleet.regular(1, 2, 2, gpu_type={"A100": 1, "H100": 1}), "heuristic", log=log)
    s.submit(one("a", 2), 100.0, now=0.0)
    s.change("a", {"A100": 600.0})
    (start,) = s.decide(60.0).starts
    state = s.snapshot()
    del s  # which writes to it
    assert Scheduler.open(log).snapshot() == state
    assert start.seconds == 600.0 and [*start.nodes] == ["node0"]


def test_a_running_job_asks_for_no_label_any_more() -> None:
    """A job that runs stays where its node loses a label that it needs no longer; one that needs it has to leave."""
    nodes = Fleet.regular(1, 2, 2, labels={"fast": ["node0"]})
    s = Scheduler(nodes, "heuristic")
    for name in ("a", "b"):
        s.submit(GangJob(name, "any", (1,), requires=("fast",)), 100.0, now=0.0)
    s.decide(60.0)
    s.change("a", requires=())
    with pytest.raises(InstanceError, match=r"^requires"):
        s.change("a", requires=("slow",))
    assert s.resize(Fleet.regular(1, 2, 2, labels={"fast": ["node1"]})) == ("b",)
    s.submit(GangJob("c", "any", (2,)), 100.0)
    s.change("c", requires=("fast",))
    assert started(s) == ["b"] and [*s.running] == ["a", "b"]


def test_who_waited_elsewhere_is_due_sooner() -> None:
    """A job that began to wait elsewhere goes before shorter ones that came later once it is due."""
    s = Scheduler(Fleet.regular(1, 1, 2), "heuristic", patience=10.0)
    s.submit(one("a", 2), 100.0, now=10_000.0, since=0.0)
    s.submit(one("b", 2), 50.0)
    assert started(s) == ["a"]
    with pytest.raises(InstanceError, match=r"^since"):
        s.submit(one("c", 2), 50.0, since=float("nan"))


def fleet(*names: str, gpus: int = 2) -> Fleet:
    """Return nodes of these names."""
    whole = Fleet.regular(1, 6, gpus)
    return whole.at([int(name.removeprefix("node")) for name in names])


def test_nodes_come_and_go() -> None:
    """What runs on nodes that stay runs on there, wherever they are in the list; what ran on others waits again."""
    s = Scheduler(fleet("node0", "node1", "node2"), "heuristic")
    for i in range(3):
        s.submit(one(f"j{i}", 2), 100.0 + i, now=0.0)
    s.submit(one("wide", 2), 500.0)
    s.submit(one("later"), 5.0, begin=1000.0)
    s.decide(60.0)
    s.drain("node1", at=50.0)
    s.drain("node2", at=60.0)
    s.finish("j0", now=10.0)
    s.fail_node("node0")
    lost = s.resize(fleet("node4", "node2", "node0"), now=20.0)
    assert lost == ("j1",) and s.running == ("j2",) and s.waiting == ("wide", "j1", "later") and s.now == 20.0
    told = s.explain("j2")
    assert isinstance(told, RunsNow) and told.nodes == {"node2": (0, 1)} and told.left == 82.0
    assert [window.name for window in s.windows] == ["drain-node2"]
    assert {x.job: [*x.nodes] for x in s.decide(60.0).starts} == {"j1": ["node4"]}  # node0 is down still
    s.repair_node("node0")
    assert {x.job: [*x.nodes] for x in s.decide(60.0).starts} == {"wide": ["node0"]}


def test_a_gang_waits_while_its_nodes_are_gone(tmp_path: Path) -> None:
    """Any nodes are taken: what no longer fits waits, says by how much, and starts once there are enough again."""
    s = Scheduler(fleet("node0", "node1"), "heuristic", log=(log := tmp_path / "log.jsonl"))
    s.submit(one("whole", 2), 100.0, now=0.0)
    s.submit(one("all", 4), 100.0)
    s.decide(60.0)
    assert s.resize(fleet("node0", "node1", gpus=1), now=1.0) == ("whole",)  # node0 has less than it holds
    assert s.resize(fleet("node1")) == ()
    assert s.resize(fleet()) == () and str(s).count("0 nodes, 0 of 0 GPUs idle")
    assert not s.decide(60.0).starts and "room for 0 of its 4 workers" in s.explain("all").why  # type: ignore[union-attr]
    s.change("all", now=2.0, priority=1)
    s.checkpoint()
    s.resize(fleet("node5"))
    assert [start.job for start in s.decide(60.0).starts] == ["whole"]
    told = s.explain("all")
    assert isinstance(told, WaitingJob)
    assert told.why == "the nodes that there are are too few for it: they have room for 2 of its 4 workers"
    s.checkpoint()
    state = s.snapshot()
    del s  # which writes to it
    s = Scheduler.open(log)
    assert s.snapshot() == state == replay(read_log(log)).snapshot()
    s.resize(fleet("node5", "node3", "node4"))
    assert [start.job for start in s.decide(60.0).starts] == ["all"]
    with pytest.raises(InstanceError, match="fleet: 'node0' is no Fleet"):
        s.resize("node0")  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="fleet: it is of other nodes"):
        Scheduler(fleet("node0", "node2"), "heuristic").restore(
            Scheduler(fleet("node0", "node1"), "heuristic").snapshot()
        )


def test_labels_types_and_racks_may_go() -> None:
    """A job whose label, GPU type or level no node has any more waits, runs nowhere, and starts when it comes back."""
    rich = Fleet.regular(1, 2, 2, gpu_type=("A", "B"), labels={"ssd": [0]})
    flat = replace(fleet("node3"), topology=TreeTopology((Level("row", 1e9),), np.zeros((1, 1), np.int32)))
    s = Scheduler(rich, "heuristic")
    s.submit(GangJob("label", "any", (1,), requires=("ssd",)), 9.0, now=0.0)
    s.submit(one("type"), {"B": 9.0})
    s.submit(one("rack"), 9.0, within="rack")
    assert len(s.decide(60.0).starts) == 3 and s.resize(flat, now=1.0) == ("label", "rack", "type")
    assert not s.decide(60.0).starts
    for name in s.waiting:
        assert "room for 0 of its 1 worker" in s.explain(name).why  # type: ignore[union-attr]
        s.change(name, now=2.0, priority=2)
    s.resize(rich)
    assert len(s.decide(60.0).starts) == 3


def test_an_empty_cluster_grows() -> None:
    """A job that awaits nodes is taken where there are none of its size, label or type; any other is refused."""
    s = Scheduler(Fleet.regular(racks=1, nodes=0), "hybrid", price=5.0)
    asks = GangJob("big", "any", (16,), requires=("ssd",))
    with pytest.raises(InstanceError, match="'ssd' is no label"):
        s.submit(asks, 60.0, now=0.0)
    with pytest.raises(InstanceError, match="16 GPUs, more than the 0 that there are; await_nodes=True"):
        s.submit(one("big", 16), 60.0, now=0.0)
    s.submit(asks, 60.0, now=0.0, await_nodes=True)
    s.submit(one("typed", 2), {"H100": 60.0}, await_nodes=True)
    assert s.whatif(one("more", 3), 5.0, await_nodes=True).earliest is None and not s.decide(60.0).starts
    assert s.defragment(gang="big") is None
    s.resize(Fleet.regular(1, 2, 8, gpu_type=("A", "H100"), labels={"ssd": [0, 1]}), now=5.0)
    assert {start.job for start in s.decide(60.0).starts} == {"typed"}
    s.finish("typed", now=60.0)
    assert {start.job for start in s.decide(60.0).starts} == {"big"}


@pytest.mark.parametrize("policy", ["patient", "gnn"])
def test_who_awaits_nodes_has_a_place_in_the_order(policy: str) -> None:
    """Where no node takes a job it waits and is slowed down by nothing, and starts once there is one."""
    s = Scheduler(Fleet.regular(racks=1, nodes=0), policy, speeds=Proximity())
    s.submit(one("a"), 10.0, now=0.0, await_nodes=True)
    assert not s.decide(60.0).starts and s.explain("a").earliest is None
    s.resize(Fleet.regular(1, 1, 8))
    assert started(s) == ["a"]


def test_the_guard_plays_jobs_from_before_nodes_went() -> None:
    """What came to a larger cluster is played as large as the smaller one is, when the guard compares next."""
    s = Scheduler(Fleet.regular(1, 2, 4), "gnn", speeds=Proximity())
    for name in "abc":
        s.submit(one(name, 8), 10.0, now=0.0)
    s.resize(Fleet.regular(1, 1, 4), now=1.0)
    assert s._network is not None
    s._network.guard.due = 0
    s.submit(one("d", 2), 10.0, now=2.0)
    assert started(s) == ["d"]


def test_nodes_that_go_and_come_back_change_nothing() -> None:
    """Resizing to the same nodes, in any order, leaves what runs, and decisions after it as they were."""
    for seed in range(5):
        rng, names = random.Random(seed), [f"node{i}" for i in range(5)]
        s = Scheduler(fleet(*names), "heuristic", price=5.0)
        for i in range(12):
            s.submit(one(f"j{i}", rng.randint(1, 4)), rng.uniform(1, 99), now=0.0)
        s.decide(60.0)
        runs = {name: s.explain(name) for name in s.running}
        rng.shuffle(names)
        assert s.resize(fleet(*names, "node5"), now=1.0) == ()
        assert s.resize(fleet(*sorted(names)), now=1.0) == ()
        again = {name: s.explain(name) for name in s.running}
        assert {n: (x.nodes, x.since) for n, x in again.items()} == {n: (x.nodes, x.since) for n, x in runs.items()}  # type: ignore[union-attr]


def test_a_job_that_others_started_runs(tmp_path: Path) -> None:
    """It holds the first free GPUs of the nodes that are named, and the log has it."""
    log = tmp_path / "log.jsonl"
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic", log=log)
    s.submit(one("a", 2), 100.0, now=0.0)
    s.decide(60.0)
    s.submit(one("b", 3), 100.0, now=10.0)
    s.adopt("b", {"node0": 1, "node1": 2}, now=20.0)
    assert s.running == ("a", "b") and s.idle == 3 and s._state.running["b"].end == 120.0
    assert s._state.running["b"].nodes == {0: (2,), 1: (0, 1)}
    state = s.snapshot()
    del s
    assert Scheduler.open(log).snapshot() == state


def test_who_cannot_be_where_he_is_said_to_be() -> None:
    """A job that does not wait, too few workers, GPUs that are held, nodes that are down: nothing changes."""
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic")
    s.submit(one("a", 4), 100.0, now=0.0)
    s.submit(GangJob("later", "any", (1,)), 10.0, begin=50.0)
    s.adopt("a", {"node0": 4})
    s.submit(one("b", 2), 100.0)
    before = s.snapshot()
    for name, nodes, words in (
        ("a", {"node1": 4}, "does not wait"), ("b", {"node1": 1}, "not one of its numbers"), ("c", {}, "not known"),
        ("b", {"node0": 1, "node1": 1}, "no GPU is given"), ("b", {"node9": 2}, "no node"),
        ("later", {"node1": 1}, "may not wait"),
    ):  # fmt: skip
        with pytest.raises(InstanceError, match=words):
            s.adopt(name, nodes)
        assert s.snapshot() == before
    s.fail_node("node1")
    with pytest.raises(InstanceError, match="down"):
        s.adopt("b", {"node1": 2})


def test_the_clock_turns_back_what_jobs_reported() -> None:
    """A job's last report is no later than the time that is set back, so that the next one counts on from there."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8))
    scheduler.submit(GangJob("a", "m", (4,)), 1000.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.report("a", 1.0, now=500.0)
    scheduler.set_clock(10.0)
    assert scheduler.snapshot()["learned"]["jobs"] == [["a", 500.0, 10.0]]


def test_who_was_due_when_it_started_was_before_the_clock_was_set_back_too() -> None:
    """It stops for nobody's gain, though it waited no time by the clock that holds now."""
    s = Scheduler(Fleet.regular(1, 1, 4), "heuristic", price=0.0, patience=0.1)
    s.submit(one("long", 4), 1000.0, now=100.0)
    assert [x.tier for x in s.decide(60.0, now=200.0).starts] == ["due"]
    s.set_clock(0.0)
    s.submit(one("short", 4), 10.0, now=50.0)
    assert not s.decide(60.0).stops


def test_a_wrong_time_is_refused_or_set_back(tmp_path: Path) -> None:
    """Milliseconds, or a date ten years on, are refused; what happened at a wrong date happened when it is set back."""
    fair = {"queues": {"a": 0.5}, "halflife": 60.0}
    s = Scheduler(Fleet.regular(1, 1, 4), price=5.0, sharing=fair, log=(log := tmp_path / "log.jsonl"))
    with pytest.raises(InstanceError, match="more than 1000 years"):
        s.submit(one("a", 2), 100.0, now=1.8e12 + 0.5)
    s.submit(one("a", 2), 100.0, now=1.8e9)
    assert started(s) == ["a"]
    with pytest.raises(InstanceError, match="more than 10 years"):
        s.finish("a", now=1.8e9 + 4e8)
    s.submit(one("b", 2), 100.0, now=1.8e9 + 3e8)
    assert started(s) == ["b"]
    s.submit(one("c", 4), 50.0, queue="a")
    with pytest.raises(InstanceError, match="set_clock sets a wrong time back"):
        s.submit(one("d", 4), 50.0, now=1.8e9 + 10.0)
    s.set_clock(1.8e9 + 10.0)
    told, waits = s.explain("b"), s.explain("c")
    assert isinstance(told, RunsNow) and (told.since, told.left) == (1.8e9 + 10.0, 100.0)
    assert isinstance(waits, WaitingJob) and waits.submit == s.now == 1.8e9 + 10.0
    with pytest.raises(InstanceError, match="time goes on by events"):
        s.set_clock(1.8e9 + 11.0)
    s.finish("a", now=1.8e9 + 20.0)
    state = s.snapshot()
    del s  # which writes to it
    assert Scheduler.open(log).snapshot() == state


def test_a_log_whose_times_ran_ahead_is_read(tmp_path: Path) -> None:
    """What an earlier version wrote in milliseconds is played all the same."""
    s = Scheduler(Fleet.regular(1, 1, 4), log=(log := tmp_path / "log.jsonl"))
    s._state.bounded = False
    s.submit(one("a", 2), 100.0, now=1.8e12)
    state = s.snapshot()
    del s
    assert Scheduler.open(log).snapshot() == state
