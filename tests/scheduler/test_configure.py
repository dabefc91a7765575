"""Settings that change while jobs run: dry runs, logs, snapshots of other settings."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Quota, Sharing
from gangplan.scheduler.journal.history import history_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

FLEET = Fleet.regular(racks=1, nodes=2, gpus=8)
HALVES = {"queues": {"a": 0.5, "b": 0.5}}
MORE = {"queues": {"a": 0.25, "b": 0.75}}


def gang(name: str, gpus: int) -> GangJob:
    """Return a job."""
    return GangJob(name, "any", (gpus,))


def shared(**options: Any) -> Scheduler:
    """Return a scheduler on which queue a and b hold 8 of 16 GPUs each, and b wants 4 more."""
    scheduler = Scheduler(FLEET, "heuristic", **({"price": 0.0, "sharing": HALVES} | options))
    for i in range(4):
        scheduler.submit(gang(f"{'ab'[i // 2]}{i}", 4), 3600.0, now=0.0, queue="ab"[i // 2])
    scheduler.decide(60.0)
    scheduler.submit(gang("more", 4), 1e6, now=10.0, queue="b")
    assert not scheduler.decide(60.0).stops
    return scheduler


def written(scheduler: Scheduler) -> str:
    """Return the bytes of a snapshot."""
    return json.dumps(scheduler.snapshot())


def test_a_larger_share_is_taken_back_from_who_runs() -> None:
    """A dry run says who would stop and start, changes no byte, and is what the next decision does."""
    scheduler = shared()
    before = written(scheduler)
    told = scheduler.configure(sharing=MORE, dry_run=True)
    assert told is not None and written(scheduler) == before
    assert (len(told.stops), told.starts, told.waits) == (1, ("more",), ()) and told.stops[0] in ("a0", "a1")
    assert scheduler.configure(sharing=MORE) is None
    assert {*scheduler.running} == {"a0", "a1", "b2", "b3"} and scheduler.waiting == ("more",)
    decision = scheduler.decide(60.0)
    assert tuple(x.job for x in decision.stops) == told.stops and [x.cause for x in decision.stops] == ["reclaim"]
    assert tuple(x.job for x in decision.starts) == told.starts


def test_limits_and_queues_come_and_go() -> None:
    """A queue is added for new jobs; one with jobs cannot go, and the error names it and them."""
    scheduler = shared()
    before = written(scheduler)
    with pytest.raises(InstanceError, match=r"sharing\.queues: 'b' is not declared.*; of it are b2, b3, more|more, b2"):
        scheduler.configure(sharing={"queues": {"a": 1.0}})
    for wrong in ({}, {"patience": -1.0}, {"price": "x"}, {"sharing": {"queues": {"a": 2.0}}}, {"now": -1.0}):
        with pytest.raises(InstanceError):
            scheduler.configure(**wrong)  # type: ignore[arg-type]
    assert written(scheduler) == before
    three = Sharing(queues={"a": 0.25, "b": Quota(0.5, most=0.5), "c": 0.25}, limits={"ann": 2})
    told = scheduler.configure(sharing=three, dry_run=True, now=20.0)
    scheduler.configure(sharing=three, now=20.0)
    assert told is not None and not (told.stops or told.starts or told.waits)
    scheduler.submit(gang("new", 2), 60.0, queue="c", user="ann")
    assert scheduler.explain("more").why.startswith("queue b has 50.0%")
    for name in ("b2", "b3", "more"):
        scheduler.withdraw(name)
    scheduler.configure(sharing={"queues": {"a": 0.5, "c": 0.5}})
    assert [x.job for x in scheduler.decide(60.0).starts] == ["new"]


def test_a_dry_run_says_who_would_wait() -> None:
    """Who would start now, and would not by a limit, waits."""
    scheduler = Scheduler(FLEET, "heuristic")
    scheduler.submit(gang("x", 4), 60.0, now=0.0, user="ann")
    scheduler.submit(gang("y", 4), 60.0, user="ann")
    told = scheduler.configure(sharing={"limits": {"ann": 4}}, dry_run=True)
    assert told is not None and (told.starts, told.waits) == ((), ("y",))
    assert "waits" in str(told) and told.as_dict()["waits"] == ("y",)


def test_the_price_of_the_scheduler_is_new_and_a_jobs_own_stays() -> None:
    """Jobs that were told no price have the new one, whether they run, wait or are held back; others keep theirs."""
    scheduler = Scheduler(FLEET, price=10.0)
    for name, terms in (("usual", {}), ("own", {"price": 10.0}), ("never", {"price": None}), ("later", {"begin": 9.0})):
        scheduler.submit(gang(name, 6), 3600.0, now=0.0, **terms)  # type: ignore[arg-type]
    scheduler.decide(60.0)
    scheduler.change("own", price=20.0)
    scheduler.configure(price=60.0)
    rows = scheduler.snapshot()
    requests = [x["request"] for x in (*rows["running"], *rows["later"]["held"])] + rows["waiting"]
    prices = {x["job"]["name"]: x["price"] for x in requests}
    assert prices == {"usual": 60.0, "own": 20.0, "never": None, "later": 60.0}
    fresh = Scheduler(FLEET, price=60.0)
    fresh.restore(json.loads(json.dumps(rows)))
    assert written(fresh) == json.dumps(rows)


@pytest.mark.parametrize(("changes", "due"), [({"patience": 2.0}, 205.0), ({"max_wait": None}, 5005.0),
                                              ({"max_wait": 1000.0}, 1005.0)])  # fmt: skip
def test_jobs_are_due_by_the_new_patience(changes: dict[str, float], due: float) -> None:
    """A job that waits is due so long after it was submitted, and one that runs may be stopped as before."""
    scheduler = Scheduler(FLEET, "heuristic", price=0.0, max_wait=2000.0)
    scheduler.submit(gang("runs", 16), 100.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(gang("waits", 16), 100.0, now=5.0)
    scheduler.configure(**changes, now=500.0)  # type: ignore[arg-type]
    assert scheduler._state.waiting["waits"].due == due
    assert scheduler.explain("runs").stops == 0.0


def test_a_new_price_costs_no_start_that_was_paid() -> None:
    """Who runs again and paid the old price got on for as long as it did, and keeps that through a snapshot."""
    scheduler = Scheduler(FLEET, "heuristic", price=60.0)
    scheduler.submit(gang("a", 8), 7200.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.fail_node("node0", now=100.0)
    scheduler.decide(60.0)
    scheduler.configure(price=600.0, now=1000.0)
    saved = json.loads(json.dumps(scheduler.snapshot()))
    scheduler.restore(saved)
    assert scheduler._state.running["a"].ran(1000.0) == 840.0
    assert json.loads(json.dumps(scheduler.snapshot())) == saved
    scheduler.fail_node("node1")
    assert scheduler._state.waiting["a"].pays == 600.0


def test_a_snapshot_of_other_settings() -> None:
    """It is refused in few words, or taken with its settings, or under the scheduler's own."""
    saved = json.loads(written(shared()))
    fresh = Scheduler(FLEET, "heuristic", price=5.0, sharing=MORE)
    with pytest.raises(InstanceError, match=r"snapshot\.settings\.price: it is 0\.0, here 5\.0") as error:
        fresh.restore(saved)
    assert len(str(error.value)) < 160
    with pytest.raises(InstanceError, match=r"queues\.a\.share is 0\.5, here 0\.25"):
        Scheduler(FLEET, "heuristic", price=0.0, sharing=MORE).restore(saved)
    fresh.restore(saved, settings="keep")
    assert json.loads(written(fresh)) == saved
    other = Scheduler(FLEET, "heuristic", price=5.0, sharing=MORE)
    other.restore(saved, settings="mine")
    assert (other.running, other.waiting) == (fresh.running, fresh.waiting)
    assert other._state.settings.price == 5.0 and other._state.sharing.queues["a"].share == 0.25
    fresh.configure(price=5.0, sharing=MORE)
    assert written(fresh) == written(other)
    for wrong in ("yours", 3):
        with pytest.raises(InstanceError, match="settings"):
            other.restore(saved, settings=wrong)  # type: ignore[arg-type]


def test_a_play_of_changes(tmp_path: Path) -> None:
    """Another course hears of changes when they came, but for those that are fixed; it ends though a job only ages."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, "heuristic", price=0.0, log=path)
    for name in ("first", "second"):
        scheduler.submit(gang(name, 16), 100.0, now=0.0, user="ann", priority=1)
    scheduler.decide(60.0)
    scheduler.configure(sharing={"limits": {"ann": 8}}, price=None, now=10.0)
    scheduler.finish("first", now=100.0)
    scheduler.decide(60.0)
    del scheduler
    past = history_of(read_log(path))
    played = play(past, Scheduler(FLEET, "heuristic", price=0.0))
    assert {*played.course.finish} == {"first"}
    past.fix(["sharing"])
    played = play(past, Scheduler(FLEET, "heuristic", price=0.0))
    assert {*played.course.finish} == {"first", "second"}


def random_day(seed: int, log: Path, events: int) -> Scheduler:
    """Play random events among which settings change; dry runs are compared with what is done."""
    rng, now = random.Random(seed), 0.0
    scheduler = Scheduler(FLEET, rng.choice(["heuristic", "hybrid"]), price=0.0, sharing=HALVES, log=log,
                          durations=rng.choice(["told", "history"]))  # fmt: skip
    for i in range(events):
        now += rng.expovariate(0.05)
        pick = rng.random()
        if pick < 0.6 and len(scheduler.waiting) < 10:
            terms = {"queue": rng.choice(["a", "b", ""]), "user": rng.choice("uv"), "priority": rng.choice([0, 1])}
            price = {"price": rng.choice([None, 30.0])} if rng.random() < 0.3 else {}
            seconds, grace = rng.choice([60.0, 600.0]), rng.choice([None, 20.0])
            scheduler.submit(gang(f"j{i}", rng.choice([1, 2, 4, 8])), seconds, now=now, grace=grace, **terms, **price)
        elif pick < 0.75 and scheduler.running:
            scheduler.finish(rng.choice(scheduler.running), now=now)
        elif pick > 0.85:
            quotas = rng.choice([HALVES, MORE, {"queues": {"a": {"share": 0.5, "most": 0.6}, "b": 0.1}},
                                 {**HALVES, "limits": {"u": 8}, "halflife": 500.0, "fair_users": True},
                                 {**MORE, "least_run": 50.0, "most_run": 300.0}])  # fmt: skip
            some: dict[str, Any] = {"sharing": quotas, "price": rng.choice([0.0, 20.0, None])}
            some |= {"patience": rng.choice([1.0, 50.0]), "max_wait": rng.choice([None, 400.0]), "grace": 10.0}
            some = {name: some[name] for name in rng.sample(sorted(some), rng.randint(1, 5))}
            before = written(scheduler)
            told = scheduler.configure(**some, now=now, dry_run=True)
            assert told is not None and written(scheduler) == before
            usual = Scheduler(FLEET, scheduler._policy, **scheduler._arguments)
            usual.restore(json.loads(before))
            without = usual.decide(60.0, now=now)
            scheduler.configure(**some, now=now)
            decision = scheduler.decide(60.0)
            for kind in ("stops", "stopping", "starts"):
                others = {x.job for x in getattr(without, kind)}
                assert getattr(told, kind) == tuple(x.job for x in getattr(decision, kind) if x.job not in others)
            assert {*told.waits} == {*scheduler.waiting} - {*usual.waiting} - {*told.stops}
            continue
        scheduler.decide(60.0, now=now)
    return scheduler


@pytest.mark.parametrize("seed", range(2))
def test_random_days_of_changes(seed: int, tmp_path: Path) -> None:
    """Dry runs come true, and the log leads to the same bytes, from its beginning and from a checkpoint."""
    path = tmp_path / "log.jsonl"
    scheduler = random_day(seed, path, 40)
    state = written(scheduler)
    scheduler.checkpoint()
    assert written(scheduler) == state
    del scheduler
    assert json.dumps(replay(read_log(path), check=True).snapshot()) == state
    opened = Scheduler.open(path)
    assert written(opened) == state and any(row["event"] == "configure" for _, row in read_log(path).rows)
    past = history_of(read_log(path))
    assert play(past, Scheduler(FLEET, "heuristic", price=0.0, sharing=HALVES)).skipped == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_many_random_days_of_changes(seed: int, tmp_path: Path) -> None:
    """The same for many days."""
    test_random_days_of_changes(1000 + seed, tmp_path)
