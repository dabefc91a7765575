"""`Scheduler`: what starts, where, in which order, and what it refuses."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.cli.simulation_study import ONLINE
from gangplan.instances import Cluster, DeviceType, InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Decision, Scheduler
from gangplan.scheduler.journal.values import HOMES
from gangplan.scheduler.scheduler import RULES, SCHEDULER_POLICIES

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "scheduler_loop.py"
FLEET = Fleet.regular(racks=2, nodes=2, gpus=4)


def job(name: str, *workers: int, **options: Any) -> GangJob:
    """Return a gang of any model."""
    return GangJob(name, "m", workers or (1,), **options)


def started(decision: Decision) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return job -> node -> GPUs."""
    return {start.job: dict(start.nodes) for start in decision.starts}


def plain(**options: Any) -> Scheduler:
    """Return a scheduler without lookahead."""
    return Scheduler(FLEET, "heuristic", **options)


def test_gang_stays_together() -> None:
    """Three GPUs are of one node, six of two whole ones of one rack."""
    scheduler = plain()
    scheduler.submit(job("small", 3), 10.0)
    scheduler.submit(job("large", 6), 20.0)
    found = started(scheduler.decide(1.0))
    assert [len(gpus) for gpus in found["small"].values()] == [3]
    assert sorted(found["large"]) in (["node0", "node1"], ["node2", "node3"])
    assert not set(found["large"]) & set(found["small"])


def test_gang_may_spread() -> None:
    """A gang that need not stay together takes what is left of several nodes."""
    scheduler = plain(together=False)
    for i in range(4):
        scheduler.submit(job(f"s{i}", 3, most_per_node=3, apart=tuple(f"s{j}" for j in range(i))), 100.0)
    assert len(scheduler.decide(1.0).starts) == 4
    scheduler.submit(job("wide", 4), 1.0)
    assert sorted(map(len, started(scheduler.decide(1.0))["wide"].values())) == [1, 1, 1, 1]


def test_shortest_first_and_nobody_delays_who_waits() -> None:
    """The shortest goes first; the longer ones behind one that does not fit start only if they end before it can."""
    scheduler = plain(order=0.0)
    scheduler.submit(job("runs", 12), 100.0)
    scheduler.decide(1.0)
    scheduler.submit(job("held", 8), 200.0)
    scheduler.submit(job("late", 4), 300.0)
    scheduler.submit(job("early", 2), 50.0)
    assert set(started(scheduler.decide(1.0))) == {"early"}
    scheduler.finish("early", now=50.0)
    scheduler.withdraw("late")
    scheduler.submit(job("fits", 4), 50.0)
    assert set(started(scheduler.decide(1.0))) == {"fits"}


def test_a_job_that_overruns_keeps_nobody_out() -> None:
    """It is expected to run as long again: what ends by then starts before the held job, what does not waits."""
    scheduler = plain(order=0.0)
    scheduler.submit(job("runs", 12), 100.0)
    scheduler.decide(1.0)
    scheduler.submit(job("held", 16), 50.0)
    scheduler.submit(job("late", 4), 1001.0)
    scheduler.submit(job("early", 4), 1000.0)
    assert set(started(scheduler.decide(1.0, now=1000.0))) == {"early"}


def test_who_spares_the_held_job_starts() -> None:
    """A long job that leaves the held one its GPUs is let in."""
    scheduler = plain(order=0.0)
    scheduler.submit(job("runs", 12), 100.0)
    scheduler.decide(1.0)
    scheduler.submit(job("held", 12), 200.0)
    scheduler.submit(job("long", 4), 9000.0)
    assert set(started(scheduler.decide(1.0))) == {"long"}


def test_degrees_fall_as_jobs_wait() -> None:
    """A job alone gets all it may have; where many wait, each gets what costs the fewest GPU seconds."""
    scheduler = plain()
    scheduler.submit(job("alone", 1, 2, 4), (40.0, 22.0, 12.0))
    (start,) = scheduler.decide(1.0).starts
    assert (start.degree, start.seconds) == (4, 12.0)
    for i in range(40):
        scheduler.submit(job(f"j{i}", 1, 2, 4), (40.0, 22.0, 12.0))
    assert [start.degree for start in scheduler.decide(1.0).starts] == [1] * 12


def test_fewer_workers_where_more_do_not_fit() -> None:
    """Of 4, 8 or 16 workers a job starts with the four GPUs that are idle, not with the 16 it would have alone."""
    for runs, degree in ((0, 16), (12, 4)):
        scheduler = plain()
        if runs:
            scheduler.submit(job("runs", runs), 1000.0)
            scheduler.decide(1.0)
        scheduler.submit(job("a", 4, 8, 16), (40.0, 20.0, 10.0))
        assert [(start.job, start.degree) for start in scheduler.decide(1.0).starts] == [("a", degree)]


def test_cores_labels_and_neighbours() -> None:
    """Cores, selectors and jobs that want to be apart are kept."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=4, cpu=8.0)
    scheduler = Scheduler(fleet, "heuristic")
    scheduler.submit(job("a", 1, worker=Demand(1.0, cpu=6.0)))
    scheduler.submit(job("b", 1, worker=Demand(1.0, cpu=6.0)))
    scheduler.submit(job("c", 1, worker=Demand(1.0, cpu=6.0)))
    found = started(scheduler.decide(1.0))
    assert len(found) == 2
    assert {next(iter(nodes)) for nodes in found.values()} == {"node0", "node1"}
    with pytest.raises(InstanceError, match=r"job\.requires"):
        scheduler.submit(job("x", 1, requires=("fast",)))


def test_nodes_fail_and_come_back() -> None:
    """Jobs of a failed node wait again, nothing starts there until it is repaired."""
    scheduler = plain()
    for i in range(4):
        scheduler.submit(job(f"j{i}", 4), 10.0)
    where = {name: next(iter(nodes)) for name, nodes in started(scheduler.decide(1.0)).items()}
    lost = scheduler.fail_node(where["j2"], now=1.0)
    assert lost == ("j2",)
    assert scheduler.waiting == ("j2",)
    assert scheduler.decide(1.0).starts == ()
    scheduler.finish("j0", now=2.0)
    assert set(started(scheduler.decide(1.0))["j2"]) == {where["j0"]}
    scheduler.repair_node(where["j2"])
    scheduler.submit(job("new", 4), 10.0)
    assert set(started(scheduler.decide(1.0))["new"]) == {where["j2"]}


def test_estimates_come_from_finished_jobs() -> None:
    """Without an estimate a job is expected to take what finished ones of its size took."""
    scheduler = plain()
    for i in range(8):
        scheduler.submit(job(f"j{i}", 2))
    scheduler.decide(1.0)
    for i in range(8):
        scheduler.finish(f"j{i}", now=77.0)
    scheduler.submit(job("next", 2))
    assert scheduler._state.waiting["next"].quantile(2, 0.5) == pytest.approx(77.0, rel=0.15)  # a bin is 28% wide


def test_device_cluster() -> None:
    """Servers of a device-level cluster are the nodes."""
    scheduler = Scheduler(Cluster.flat((DeviceType("gpu"), 4), bandwidth=1e9), "heuristic")
    scheduler.submit(job("a", 1), 1.0)
    assert len(scheduler.decide(1.0).starts) == 1


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda s: s.submit(job("a", 1)), "job.name: 'a' runs already"),
        (lambda s: s.submit(job("w", 1)), "job.name: 'w' waits already"),
        (lambda s: s.submit(job("done", 1)), "job.name: 'done' was done already"),
        (lambda s: s.submit(job("b", 99)), "job: 'b' with 99 workers never fits"),
        (lambda s: s.submit(job("b", 1), float("nan")), "seconds"),
        (lambda s: s.submit(job("b", 1, 2), (1.0,)), "seconds: has 1 entries for 2"),
        (lambda s: s.submit(job("b", 1, worker=Demand(0.5))), "job.worker.gpu: 0.5"),
        (lambda s: s.submit(job("b", 1), 1.0, now=-1.0), "now: -1"),
        (lambda s: s.submit(job("b", 1), 1.0, price=-1.0), "price: -1"),
        (lambda s: s.submit("b"), "job: 'b' is no GangJob"),
        (lambda s: s.submit(job("b", 1), 1.0, together="no"), "together: 'no' is not true or false"),
        (lambda s: s.submit(job("b", 1), {1: "x"}), r"seconds\[0\]: 'x'"),
        (lambda s: s.submit(job("b", 1), b"x" * 2), "seconds: has 2 entries"),
        (lambda s: s.explain([1]), r"what: \[1\]"),
        (lambda s: s.explain(1.5), "what: 1.5"),
        (lambda s: s.withdraw([]), r"job: \[\] does not wait"),
        (lambda s: s.finish(None), "job: None does not run"),
        (lambda s: s.report("a", "fast"), "speed: 'fast'"),
        (lambda s: s.report("a", 0.0), "speed: 0.0"),
        (lambda s: s.decide(1.0, now=float("inf")), "now: inf"),
        (lambda s: s.finish("w"), "job: 'w' does not run: it waits"),
        (lambda s: s.finish("?"), r"job: '\?' does not run: it is not known"),
        (lambda s: s.finish("done"), "job: 'done' does not run: it is done"),
        (lambda s: s.finish("a", now=1.0), "now: 1.0 is before 5.0"),
        (lambda s: s.withdraw("done"), "job: 'done' does not wait"),
        (lambda s: s.fail_node("node9"), "node: 'node9' is no node"),
        (lambda s: s.fail_node(4), "node: 4 is no node of the cluster, which has 4"),
        (lambda s: s.fail_node("node3"), "node: 'node3' is down already"),
        (lambda s: s.repair_node(0), "node: 0 is up"),
        (lambda s: s.decide(0.0), "deadline: 0.0"),
        (lambda s: s.explain(99), "what: 99"),
    ],
)
def test_refusals_change_nothing(act: Any, words: str) -> None:
    """What is wrong is refused with its field and value, and the state is as before."""
    scheduler = plain()
    scheduler.submit(job("done", 1), 1.0)
    scheduler.decide(1.0)
    scheduler.finish("done", now=5.0)
    scheduler.submit(job("a", 1), 9.0)
    scheduler.decide(1.0)
    scheduler.submit(job("w", 16), 9.0)
    scheduler.fail_node("node3")
    before = json.dumps(scheduler.snapshot())
    with pytest.raises(InstanceError, match=words):
        act(scheduler)
    assert json.dumps(scheduler.snapshot()) == before


def test_first_mistakes_say_what_to_write() -> None:
    """Whoever gives a number of GPUs for a cluster, or a name for a job, is told what to write."""
    with pytest.raises(
        InstanceError, match=r"cluster: 16 is neither .*write Fleet.regular\(racks=1, nodes=2, gpus=8\)"
    ):
        Scheduler(16)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match=r"job: 'x' is no GangJob; write GangJob\('x', 'any', workers=\(8,\)\)"):
        plain().submit("x")  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match=r"workers: 8 is not a sequence; write \(8,\)"):
        GangJob("a", "any", 8)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match=r"requires: 'v100' is not a sequence; write \('v100',\)"):
        GangJob("a", "any", (8,), requires="v100")


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "best"},
        {"policy": 3},
        {"order": -1.0},
        {"order": 1e9},
        {"price": "much"},
        {"patience": -1.0},
        {"max_wait": -1.0},
        {"together": "yes"},
        {"reserve": 2},
        {"speeds": 3},
        {"forget": 2.0},
    ],
)
def test_bad_arguments(options: dict[str, Any]) -> None:
    """An argument that is wrong is named."""
    with pytest.raises(InstanceError, match=next(iter(options))):
        Scheduler(FLEET, **options)


@pytest.mark.usefixtures("ticking_clock")
def test_deadline_is_kept() -> None:
    """What does not start in time starts in the next calls."""
    scheduler = Scheduler(Fleet.regular(10, 10, 8), "heuristic")
    for i in range(800):
        scheduler.submit(job(f"j{i}", 1), 1.0)
    first = scheduler.decide(0.01)
    assert first.more
    assert 0 < len(first.starts) < 800
    assert first.seconds < 0.02  # of the clock that is read every few starts
    total = len(first.starts)
    while (decision := scheduler.decide(0.05)).more:
        total += len(decision.starts)
    assert total + len(decision.starts) == 800


def test_explanation_tells_orders_and_bound() -> None:
    """The lookahead's candidates are told, one of them chosen, with a bound that no simulation beats."""
    scheduler = Scheduler(FLEET, price=5.0)
    rng = np.random.default_rng(0)
    for i in range(60):
        scheduler.submit(job(f"j{i}", int(rng.integers(1, 5))), float(rng.lognormal(5, 2)), now=float(10 * i))
        decision = scheduler.decide(5.0)
    told = scheduler.explain(decision)
    assert len(told.candidates["lookahead"]) == 5
    assert [c.why_not for c in told.candidates["lookahead"]].count("") == 1
    assert told.objective is not None
    assert told.bound is not None
    assert 0 < told.bound <= told.objective
    assert "at least" in str(told)


def test_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """All 200 jobs come, run and end, and the last decision is explained."""
    left = runpy.run_path(str(EXAMPLE))
    assert not left["jobs"]
    assert not left["scheduler"].running
    assert not left["scheduler"].waiting
    number = left["decision"].number  # an event each, and on a busy machine what a deadline left of one
    assert number >= 400 and f"decision {number}, by " in capsys.readouterr().out


def test_node_that_is_not_usable_at_first() -> None:
    """It is down: nobody starts there, `explain` says so, and it can be repaired."""
    scheduler = Scheduler(replace(Fleet.regular(1, 2), usable=np.array([True, False])))
    scheduler.submit(job("a", 8), 10.0)
    scheduler.submit(job("b", 8), 10.0)
    assert [*started(scheduler.decide(60.0)).values()] == [{"node0": tuple(range(8))}]
    assert "repair node1" in str(scheduler.explain("b"))
    scheduler.repair_node(1)
    assert scheduler.idle == 8 and set(started(scheduler.decide(60.0))) == {"b"}


def test_withdrawn_while_it_runs() -> None:
    """Its GPUs are free, and how long it ran is not learned from."""
    scheduler = plain()
    scheduler.submit(job("a", 4), 10.0)
    scheduler.decide(60.0)
    scheduler.report("a", 1.0)
    scheduler.withdraw("a", now=5.0)
    assert scheduler.idle == 16 and scheduler.snapshot()["durations"]["groups"] == []
    with pytest.raises(InstanceError, match="'a' does not run: it is done"):
        scheduler.finish("a")


def test_numbers_of_numpy() -> None:
    """They count as those of Python do, and a snapshot is JSON."""
    scheduler = Scheduler(FLEET, price=np.float32(2.0))
    gang = job("a", np.int64(2), np.int64(4), most_per_node=np.int64(4))
    scheduler.submit(gang, np.array([4, 2]), now=np.int64(1), price=np.int64(3))
    scheduler.decide(np.float32(60.0), now=np.float32(2.0))
    scheduler.report("a", np.float32(3.0))
    scheduler.fail_node(np.int64(3))
    scheduler.repair_node(np.int64(3))
    assert "a" in json.loads(json.dumps(scheduler.snapshot()))["running"][0]["request"]["job"]["name"]
    assert type(gang.workers[0]) is int and type(gang.most_per_node) is int
    assert scheduler.explain(np.int64(1)).decision == 1


def test_a_job_kept_apart_closes_no_line() -> None:
    """Who shares no node with a running job does not keep those like it from the GPUs beside that job."""
    scheduler = Scheduler(Fleet.regular(1, 1, 3), "heuristic")
    scheduler.submit(GangJob("first", "any", (1,), apart=("other",)), 5.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("other", "any", (1,)), 10.0)
    assert not scheduler.decide(60.0).starts
    for name, seconds in (("short", 6.0), ("long", 20.0)):  # one before it in its line, one behind it
        scheduler.submit(GangJob(name, "any", (1,)), seconds)
    assert {start.job for start in scheduler.decide(60.0).starts} == {"short", "long"}


def test_spare_gpus_are_no_work() -> None:
    """A gang of five that holds two nodes of four teaches how long five GPUs take."""
    scheduler = Scheduler(Fleet.regular(1, 2, 4))
    for i in range(9):
        scheduler.submit(GangJob(f"j{i}", "m", (5,)), 100.0)
        scheduler.decide(60.0)
        scheduler.finish(f"j{i}", now=100.0 * (i + 1))
    scheduler.submit(GangJob("next", "m", (5,)))
    assert scheduler._state.waiting["next"].quantile(5, 0.5) == pytest.approx(100.0, rel=0.15)


def test_whoever_lists_rules_has_them_all() -> None:
    """A rule is known by its tier to `gangplan simulate`, its type to logs."""
    assert set(ONLINE) - {"online"} == set(SCHEDULER_POLICIES) - {"gnn-unguarded"}
    for name, rule in RULES.items():
        kind = type(rule)
        assert (rule.tier, HOMES[kind.__name__]) == (name, kind.__module__.removeprefix("gangplan."))
