"""Snapshots: a state comes back from JSON, of earlier versions too, and what is no such state is refused."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.cluster import TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.scheduler import Scheduler
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay
from gangplan.scheduler.settings import MAX_WAIT


def state() -> dict[str, Any]:
    """Return a snapshot with a job of each kind."""
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0)
    scheduler.submit(GangJob("done", "m", (1,)))
    scheduler.decide(1.0)
    scheduler.finish("done", now=1.0)
    scheduler.submit(GangJob("runs", "m", (2, 4)), (5.0, 3.0))
    scheduler.decide(1.0)
    scheduler.submit(GangJob("waits", "m", (4,)))
    found: dict[str, Any] = json.loads(json.dumps(scheduler.snapshot()))
    return found


VALUES: list[Any] = [None, True, -1, 0.5, 10**400, float("nan"), float("inf"), "x", [], {}, [[1]], {"a": 1}]


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def test_any_value_in_a_snapshot() -> None:
    """A snapshot with any value anywhere is refused, and nothing has changed, or it is a state one can go on from."""
    good = state()
    rows = ((place, value) for i, place in enumerate(places(good)[1:]) for value in VALUES[i % 4 :: 4])
    for place, value in rows:  # each value at every fourth place; the fuzzer has them at any
        bad = copy.deepcopy(good)
        holder: Any = bad
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0)
        try:
            scheduler.restore(bad)
        except InstanceError as error:
            assert str(error).startswith("snapshot")
            assert (scheduler.waiting, scheduler.running, scheduler.now) == ((), (), 0.0)
        else:
            scheduler.decide(1.0)
            for name in scheduler.running:
                scheduler.finish(name, now=scheduler.now + 1.0)
            json.dumps(scheduler.snapshot(), allow_nan=False)


def test_snapshot_goes_on_alike() -> None:
    """A scheduler restored from JSON decides as the one it was taken of, and twice alike."""

    def play(scheduler: Scheduler, first: int, last: int) -> list[tuple[Any, ...]]:
        found = []
        for i in range(first, last):
            price = None if i % 5 == 0 else 3.0
            scheduler.submit(GangJob(f"j{i}", "m", (1 + i % 4,)), float(10 ** (i % 6)), now=float(i), price=price)
            if i == 70:
                scheduler.fail_node(2)
            if i % 3 == 0 and scheduler.running:
                scheduler.finish(scheduler.running[0])
            decision = scheduler.decide(5.0)
            found += [(s.job, s.other, s.left) for s in decision.stops]
            found += [(s.job, s.tier, dict(s.nodes)) for s in decision.starts]
        return found

    fleet = Fleet.regular(1, 4, 4)
    one, two = (Scheduler(fleet) for _ in range(2))
    before = play(one, 0, 160)
    assert before == play(two, 0, 160)
    assert any(isinstance(entry[2], float) for entry in before), "nobody was stopped"
    state = json.loads(json.dumps(one.snapshot()))
    other = Scheduler(fleet)
    other.restore(state)
    assert json.loads(json.dumps(other.snapshot())) == state
    assert play(one, 160, 200) == play(other, 160, 200)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 0},
        {"nodes": 5},
        {"down": ["x"]},
        {"running": [{"request": 1}]},
        {"now": "later"},
        {"waiting": [{"seconds": []}]},
    ],
)
def test_bad_snapshots_change_nothing(change: dict[str, Any]) -> None:
    """What is no snapshot of such a cluster is refused, naming it, and the scheduler is as before."""
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0)
    scheduler.restore(state())
    before = scheduler.snapshot()
    with pytest.raises(ValueError, match="snapshot"):
        scheduler.restore(before | change)
    assert scheduler.snapshot() == before


def test_a_state_while_a_large_node_is_down() -> None:
    """A gang that then takes two whole nodes, more than its queue may hold, is restored and taken like any other."""
    fleet = Fleet.regular(1, 3, (8, 4, 4))
    s, other = (Scheduler(fleet, sharing={"queues": {"a": {"most": 0.4}}}) for _ in range(2))
    s.submit(GangJob("five", "m", (5,)), 9.0, now=0.0, queue="a")
    s.fail_node("node0")
    s.submit(GangJob("more", "m", (5,)), 9.0, queue="a")
    other.restore(json.loads(json.dumps(s.snapshot())))
    assert other.snapshot() == s.snapshot() and not other.decide(60.0).starts
    other.repair_node("node0")
    assert [start.job for start in other.decide(60.0).starts] == ["five"]


def test_double_booking_in_a_snapshot_is_seen() -> None:
    """Two jobs on one GPU are refused by the verifier."""
    found = state()
    twin = copy.deepcopy(found["running"][0])
    twin["request"]["job"]["name"] = "twin"
    found["running"].append(twin)
    with pytest.raises(ValueError, match="is held by runs"):
        Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0).restore(found)


def test_snapshot_of_an_earlier_version() -> None:
    """One that was written before jobs were due some time is restored, says when they are, and is gone on from."""
    saved = json.loads((Path(__file__).parent / "snapshot_v3.json").read_text())
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0)
    scheduler.restore(saved)
    assert saved["version"] == 3 and "due" not in saved["waiting"][0]
    ours, now = json.loads(json.dumps(scheduler.snapshot())), state()
    (waits,), (later,) = ours.pop("waiting"), now.pop("waiting")
    unknown = {"intervals": None}  # what was learned of waits since
    del ours["durations"]["again"], now["durations"]["again"]  # nor whose turn it is to be predicted anew
    assert ours | unknown == now | unknown
    assert waits["seconds"] == [0.25]
    distribution = {"seconds", "work", "index", "due"}  # the estimate of that time stays as it was, a point
    assert {key: waits[key] for key in waits.keys() - distribution} == {
        k: later[k] for k in later.keys() - distribution
    }
    scheduler.finish("runs", now=4.0)
    (start,) = scheduler.decide(1.0).starts
    assert (start.job, start.degree, start.seconds) == ("waits", 4, 0.25)


def test_ties_are_broken_alike_after_a_restore() -> None:
    """Of equal jobs the same one is stopped, whatever ended before the snapshot was written."""
    fleet, found = Fleet.regular(1, 1, 3), []
    scheduler, other = (Scheduler(fleet, "heuristic", price=0.0) for _ in range(2))
    for name in "ABC":
        scheduler.submit(GangJob(name, "m", (1,)), 1000.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.finish("A", now=1.0)
    scheduler.submit(GangJob("E", "m", (1,)), 5.0, now=1.0)
    scheduler.decide(60.0)
    other.restore(json.loads(json.dumps(scheduler.snapshot())))
    for one in (scheduler, other):
        one.submit(GangJob("D", "m", (1,)), 10.0, now=2.0)
        decision = one.decide(60.0)
        found.append(([x.job for x in decision.stops], [(x.job, dict(x.nodes)) for x in decision.starts]))
    assert found[0] == found[1] and found[0][0]


def test_snapshot_before_terms() -> None:
    """One of version 4, written at commit f147ab3, is restored with its promise, and kept to: nobody passes who is due.

    "waits" needs all 4 GPUs, is due since 7 s and is to have them at 21 s, when "runs" ends; "beside" would run until
    38 s on the free node.
    """
    saved = json.loads((Path(__file__).parent / "snapshot_v4.json").read_text())
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", patience=2.0)
    scheduler.restore(saved)
    assert saved["version"] == 4 and saved["promises"] == {"waits": 21.0} and "terms" not in saved["waiting"][0]
    now = json.loads(json.dumps(scheduler.snapshot()))
    assert now["promises"] == saved["promises"] and [row["terms"] for row in now["waiting"]] == [{}, {}]
    same = saved.keys() - {"version", "waiting", "running", "settings", "guess"}
    assert now["settings"] == saved["settings"] | {"durations": "told", "max_wait": MAX_WAIT, "grace": 0.0}
    assert {key: now[key] for key in same} == {key: saved[key] for key in same}
    assert scheduler.decide(1.0, now=9.0).starts == ()
    scheduler.finish("runs", now=21.0)
    assert [start.job for start in scheduler.decide(1.0).starts] == ["waits"]


def test_snapshot_and_log_before_max_wait(tmp_path: Path) -> None:
    """A snapshot without it goes on under this scheduler's, jobs due as they were; a log without it has none."""
    options: dict[str, Any] = {"patience": 50.0, "max_wait": None, "price": 60.0}
    before = Scheduler(Fleet.regular(1, 1, 8), log=tmp_path / "log.jsonl", **options)
    before.submit(GangJob("runs", "any", (8,)), 14400.0, now=0.0)
    before.decide(60.0)
    before.submit(GangJob("waits", "any", (8,)), 14400.0)
    saved = json.loads(json.dumps(before.snapshot()))
    del saved["settings"]["max_wait"]
    now = Scheduler(Fleet.regular(1, 1, 8), price=60.0)
    now.restore(saved)
    now.submit(GangJob("comes", "any", (8,)), 14400.0)
    assert [request.due for request in now._state.waiting.values()] == [720000.0, 144000.0]
    text = (tmp_path / "log.jsonl").read_text()
    (tmp_path / "old.jsonl").write_text(text.replace(',"max_wait":null', "", 1))
    assert "max_wait" in text and "max_wait" not in (tmp_path / "old.jsonl").read_text()
    opened = Scheduler.open(tmp_path / "old.jsonl")
    opened.submit(GangJob("comes", "any", (8,)), 14400.0)
    assert [request.due for request in opened._state.waiting.values()] == [720000.0, 720000.0]


def drawn(rng: random.Random) -> Fleet:
    """Return none to four of eight nodes, of two sizes and types, with labels and without racks."""
    whole = Fleet.regular(2, 4, (8, 4), gpu_type=("A", "B"), cpu=16.0, labels={"ssd": [0, 3]})
    fleet = whole.at(rng.sample(range(8), rng.randint(0, 4)))
    flat = TreeTopology(fleet.topology.levels[-1:], fleet.topology.group[-1:])
    return replace(fleet, topology=flat) if rng.random() < 0.2 else fleet


def act(s: Scheduler, rng: random.Random, name: str, now: float) -> None:
    """Tell a scheduler something at random, that may be refused."""
    gpu, jobs, nodes = rng.choice((1, 1, 0)), (*s.running, *s.waiting), s._state.fleet.names
    gang = GangJob(
        name, "m", rng.choice(((1,), (4,), (12,), (2, 8))), Demand(gpu, 1),
        gpu_types=("A", "B")[: gpu * rng.randint(0, 2)], requires=("ssd",)[: rng.randint(-1, 1) > 0],
    )  # fmt: skip
    terms: Any = {"queue": rng.choice("ab"), "await_nodes": rng.random() < 0.6, "within": rng.choice(("", "rack"))}
    kind = rng.randrange(7)
    if kind < 3:
        s.submit(gang, rng.choice((9.0, 600.0, None, 0.0)), now=now, priority=rng.randint(0, 1), **terms)
    elif kind == 3:
        s.submit_array(gang, 3, 60.0, most=1, now=now, **terms)
    elif kind == 4 and jobs:
        s.change(rng.choice(jobs), rng.choice((None, 30.0)), now=now, priority=rng.randint(0, 2))
    elif kind == 5 and s.running:
        s.finish(rng.choice(s.running), now=now)
    elif kind == 6 and nodes:
        (s.drain if rng.random() < 0.5 else s.fail_node)(rng.choice(nodes), now=now)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 300), marks=pytest.mark.long)])
def test_every_state_comes_back(tmp_path: Path, seeds: range) -> None:
    """Whatever nodes come and go, who fits no more waits; the state is restored, explained, and opened from its log."""
    sharing = {"queues": {"a": {"share": 0.5, "lends": 0.0}, "b": {"share": 0.25, "most": 0.6}}, "halflife": 60.0}
    for seed in seeds:
        rng, now = random.Random(seed), 0.0
        options: Any = {"price": rng.choice((None, 0.0, 9.0)), "durations": rng.choice(("told", "history"))}
        options |= {"sharing": sharing if seed % 2 else None, "speeds": rng.choice((None, Proximity()))}
        s = Scheduler(drawn(rng), log=tmp_path / f"{seed}.jsonl", **options)
        for i in range(20):
            now += rng.choice((0.0, 5.0, 60.0))
            with suppress(InstanceError):
                act(s, rng, f"j{i}", now)
            if rng.random() < 0.25:
                s.resize(drawn(rng), now=now)
            s.decide(60.0, now=now)
            saved = json.loads(json.dumps(s.snapshot(), allow_nan=False))
            other = Scheduler(s._state.fleet, **options)
            other.restore(saved)
            assert json.loads(json.dumps(other.snapshot())) == saved, (seed, i)
            if i % 8 == 7:
                s.checkpoint()
                assert all(str(s.explain(name)) for name in s.waiting[:2])
        state = s.snapshot()
        del s  # which writes to it
        assert Scheduler.open(tmp_path / f"{seed}.jsonl").snapshot() == state
        assert replay(read_log(tmp_path / f"{seed}.jsonl")).snapshot() == state


def test_a_job_counts_by_the_nodes_that_are_up_before_and_after_a_restore() -> None:
    """With the node of four down, three workers take two nodes of two: that is over the guarantee, so they go last."""
    fleet = replace(Fleet.regular(1, 5, 4), gpus=np.array([4, 2, 2, 2, 2], dtype=np.int32))
    s, again = (Scheduler(fleet, "heuristic", sharing={"queues": {"a": 0.25, "b": 0.5}}) for _ in range(2))
    s.submit(GangJob("a", "m", (3, 8)), 60.0, now=0.0, queue="a")
    s.submit(GangJob("b", "m", (6,)), 600.0, queue="b")
    s.fail_node(0)
    again.restore(json.loads(json.dumps(s.snapshot())))
    starts = [[x.job for x in each.decide(60.0).starts] for each in (s, again)]
    assert starts == [["b"], ["b"]]


def test_a_task_without_gpus_that_is_told_to_stop_comes_back() -> None:
    """Its seats, those that another such task claims, and its priority are numbers below 0."""
    s, again = (Scheduler(Fleet.regular(1, 1, 2, cpu=8.0), "heuristic", price=0.0, grace=9.0) for _ in range(2))
    for now, name in enumerate(("old", "new")):
        task = GangJob(name, "m", (1,), Demand(gpu=0.0, cpu=8.0))
        s.submit(task, 1000.0, now=float(now), priority=now - 1)
        s.decide(60.0)
    assert [x.job for x in s.stopping] == ["old"] and "new" in s._state.notices.claims
    again.restore(json.loads(json.dumps(s.snapshot())))
    assert [x.job for x in again.decide(60.0, now=10.0).starts] == ["new"]
