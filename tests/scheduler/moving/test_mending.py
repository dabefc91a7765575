"""Gangs that lost a node: others for those workers, the rest where it was; or all of it waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay


def torn(nodes: int, gpus: int = 2, workers: int = 4, **options: object) -> Scheduler:
    """Return a scheduler on whose first nodes a gang ran, the first of which failed at 10 s."""
    s = Scheduler(Fleet.regular(1, nodes, gpus), "heuristic", **options)  # type: ignore[arg-type]
    s.submit(GangJob("gang", "any", (workers,)), 100.0, now=0.0)
    assert "node0" in s.decide(60.0).starts[0].nodes
    assert s.fail_node("node0", replace=True, now=10.0) == ("gang",)
    return s


def test_a_gang_keeps_the_nodes_that_are_up() -> None:
    """It was on node0 and node1; it goes on with node1 and node2, all its work to do and its price to pay."""
    s = torn(4, price=7.0)
    decision = s.decide(60.0)
    (mend,), (start,) = decision.mends, decision.starts
    assert (mend.job, mend.node, mend.nodes) == ("gang", "node0", {"node2": (0, 1)})
    assert start.nodes == {"node1": (0, 1), "node2": (0, 1)} and start.seconds == 107.0
    assert start.tier == decision.tier == "mend" and s.decide(60.0).mends == ()


def test_without_room_it_waits_and_others_take_its_nodes() -> None:
    """Nothing replaces node0: the gang waits whole, and a job that fits node1 has it in the same decision."""
    s = torn(2)
    s.submit(GangJob("small", "any", (2,)), 5.0)
    decision = s.decide(60.0)
    assert not decision.mends and [x.job for x in decision.starts] == ["small"] and s.waiting == ("gang",)
    s.repair_node("node0")
    s.finish("small", now=20.0)
    assert s.decide(60.0).mends == ()  # it starts as any other


def test_without_being_asked_nothing_is_replaced() -> None:
    """A failure as it was: a shorter job goes first, on the nodes that the gang had."""
    s = Scheduler(Fleet.regular(1, 3, 2), "heuristic")
    s.submit(GangJob("gang", "any", (4,)), 100.0, now=0.0)
    s.decide(60.0)
    s.submit(GangJob("short", "any", (4,)), 5.0)
    s.fail_node("node0", now=10.0)
    decision = s.decide(60.0)
    assert not decision.mends and [x.job for x in decision.starts] == ["short"]


def test_it_goes_before_who_is_shorter_but_not_before_who_is_due() -> None:
    """A short job that waits does not take its nodes; one that is due does."""
    for patience, first in ((50.0, "gang"), (0.5, "short")):
        s = Scheduler(Fleet.regular(1, 3, 2), "heuristic", patience=patience)
        s.submit(GangJob("gang", "any", (4,)), 100.0, now=0.0)
        s.decide(60.0)
        s.submit(GangJob("short", "any", (4,)), 5.0)
        s.fail_node("node0", replace=True, now=10.0)
        assert [x.job for x in s.decide(60.0).starts] == [first]


def test_a_window_keeps_it_off() -> None:
    """The node that it kept closes before it would end: it is not mended there."""
    s = torn(3)
    s.drain("node1", at=50.0)
    decision = s.decide(60.0)
    assert not decision.mends and not decision.starts


def test_more_than_one_node_is_lost_before_the_decision() -> None:
    """Of three nodes two fail; what is new is on two others."""
    s = torn(5, workers=6)
    s.fail_node("node1", replace=True)
    (mend,) = s.decide(60.0).mends
    assert mend.node == "node0" and mend.nodes == {"node3": (0, 1), "node4": (0, 1)}


def test_bundles_and_spare_gpus() -> None:
    """Ten workers on nodes of four hold two whole nodes and two GPUs; a lost node is replaced by a whole one."""
    s = Scheduler(Fleet.regular(1, 5, 4), "heuristic")
    s.submit(GangJob("gang", "any", (10,)), 100.0, now=0.0)
    (start,) = s.decide(60.0).starts
    before = {node: len(gpus) for node, gpus in start.nodes.items()}
    lost = max(before, key=lambda node: before[node])
    s.fail_node(lost, replace=True, now=10.0)
    (mend,), (start,) = s.decide(60.0).mends, [*s._state.running.values()]
    assert start.gpus >= 10 and not {lost} & {*s.explain("gang").nodes}  # type: ignore[union-attr]
    assert all(len(gpus) == 4 for gpus in mend.nodes.values())


def test_cores_count() -> None:
    """The node with idle GPUs has no cores left, so the gang waits."""
    s = Scheduler(Fleet.regular(1, 3, 2), "heuristic")
    cores = float(s._state.fleet.cpu[0])
    s.submit(GangJob("gang", "any", (4,), Demand(1.0, cores / 2)), 100.0, now=0.0)
    s.decide(60.0)
    s.submit(GangJob("cores", "any", (1,), Demand(1.0, cores)), 100.0)
    assert [x.job for x in s.decide(60.0).starts] == ["cores"]
    s.fail_node("node0", replace=True)
    assert not s.decide(60.0).mends


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_snapshot_in_between(nodes: int) -> None:
    """A scheduler restored between failure and decision mends as the other does."""
    s, again = torn(nodes), Scheduler(Fleet.regular(1, nodes, 2), "heuristic")
    saved = json.loads(json.dumps(s.snapshot()))
    again.restore(saved)
    assert json.loads(json.dumps(again.snapshot())) == saved
    one, other = s.decide(60.0), again.decide(60.0)
    assert (one.starts, one.mends) == (other.starts, other.mends) and len(one.mends) == (nodes > 2)


def test_tasks_without_gpus_wait_again() -> None:
    """Nothing is kept for a gang that needs no GPU."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=3, gpus=1, cpu=2.0), "heuristic")
    scheduler.submit(GangJob("cores", "any", (4,), Demand(gpu=0, cpu=1.0)), 100.0, now=0.0)
    (start,) = scheduler.decide(60.0).starts
    assert scheduler.fail_node(next(iter(start.nodes)), replace=True, now=1.0) == ("cores",)
    decision = scheduler.decide(60.0)
    assert not decision.mends and [x.job for x in decision.starts] == ["cores"]


def test_a_decision_out_of_time_leaves_it_to_the_next(tmp_path: Path) -> None:
    """No time to mend at first: the next decision does, and the log tells the same of both."""
    s = torn(4, log=(log := tmp_path / "log.jsonl"))
    first = s.decide(1e-9)
    assert first.more and not first.mends and s.waiting == ("gang",)
    for check in (False, True):
        assert replay(read_log(log), check=check).snapshot() == s.snapshot()
    assert [x.job for x in s.decide(60.0).mends] == ["gang"]
    for check in (False, True):
        assert replay(read_log(log), check=check).snapshot() == s.snapshot()


def test_due_jobs_of_its_class_come_before_a_torn_gang() -> None:
    """A waiting job of a higher class does not have a gang mended before a due job of the gang's own class."""
    s = Scheduler(Fleet.regular(racks=1, nodes=3, gpus=1), "heuristic", patience=0.1, max_wait=1.0)
    s.submit(GangJob("torn", "m", (2,)), 100.0, now=0.0)
    (start,) = s.decide(60.0, now=0.0).starts
    s.submit(GangJob("due", "m", (2,)), 1.0, now=1.0)
    s.submit(GangJob("higher", "m", (3,)), 50.0, now=30.0, priority=1)
    s.fail_node(next(iter(start.nodes)), now=30.0, replace=True)
    assert [x.job for x in s.decide(60.0, now=30.0).starts] == ["due"]
