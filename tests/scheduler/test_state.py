"""What the scheduler remembers: little, however long it runs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.starting.reservations import reserve
from gangplan.scheduler.state import RECENT, SchedulerState
from gangplan.scheduler.stopping.running_jobs import RunningJob


def go(scheduler: Scheduler, first: int, last: int) -> None:
    """Have jobs of a model each come, run and go; every other one is withdrawn."""
    for i in range(first, last):
        name = f"job{i:06d}"
        scheduler.submit(GangJob(name, f"model{i:06d}", (1,)), now=float(i))
        if i % 2:
            scheduler.withdraw(name)
        else:
            scheduler.decide(1.0)
            scheduler.finish(name)


def test_finished_jobs_are_forgotten() -> None:
    """The names of the last jobs are known, those of earlier ones are new again, and a snapshot grows no more."""
    scheduler = Scheduler(Fleet.regular(1, 1, 4), "heuristic")
    go(scheduler, 0, 3 * RECENT)
    before = len(json.dumps(scheduler.snapshot()))
    go(scheduler, 3 * RECENT, 4 * RECENT)
    assert len(json.dumps(scheduler.snapshot())) < 1.02 * before
    last = 4 * RECENT
    for i in (last - 1, last - RECENT):
        with pytest.raises(InstanceError, match=f"job.name: 'job{i:06d}' was done already"):
            scheduler.submit(GangJob(f"job{i:06d}", "m", (1,)))
    scheduler.submit(GangJob(f"job{last - RECENT - 1:06d}", "m", (1,)))
    with pytest.raises(InstanceError, match="waits already"):
        scheduler.submit(GangJob(f"job{last - RECENT - 1:06d}", "m", (1,)))


def test_wake_for_a_stop() -> None:
    """A job of 1e5 s may be stopped for one of 10 s once it ran for its price, by the clock alone."""
    s = Scheduler(Fleet.regular(1, 1, 8), price=60.0)
    s.submit(GangJob("long", "any", (8,)), 1e5, now=0.0)
    s.decide(60.0)
    assert s.wake is None  # nobody waits
    s.submit(GangJob("short", "any", (8,)), 10.0, now=10.0)
    assert not s.decide(60.0).starts and s.wake == 60.0
    assert [start.job for start in s.decide(60.0, now=60.0).starts] == ["short"]


@pytest.mark.parametrize("options", [{"patience": 0.5}, {"patience": 0.5, "max_wait": 60.0}])
def test_wake_for_who_is_due(options: dict[str, float]) -> None:
    """A job of 1,200 s is due at 600 s, and then takes the GPUs that are kept for one of two nodes."""
    s = Scheduler(Fleet.regular(1, 2, 4), "heuristic", **options)
    s.submit(GangJob("runs", "any", (4,)), 1000.0, now=0.0)
    s.submit(GangJob("pad", "any", (4,)), 300.0)
    s.decide(60.0)
    s.submit(GangJob("slow", "any", (4,)), 1200.0)
    s.finish("pad", now=300.0)
    s.submit(GangJob("wide", "any", (8,)), 1100.0)
    assert not s.decide(60.0).starts and s.wake == 600.0
    assert [start.job for start in s.decide(60.0, now=600.0).starts] == ["slow"]


def test_wake_for_who_runs_longer_than_expected() -> None:
    """It is looked at right after it should have ended at 100 s, and when it ran twice as long as by then."""
    s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", patience=1e9)
    for name in "ab":
        s.submit(GangJob(name, "any", (1,)), 100.0, now=0.0)
    s.decide(60.0)
    assert s.wake == nextafter(100.0, inf)
    s.decide(60.0, now=150.0)
    assert s.wake == 300.0


@pytest.mark.parametrize("aging", [5e-324, 1e-9, 0.1, 1e300])
@pytest.mark.parametrize("now", [0.0, 1.7e9])
def test_ageing_goes_on_whatever_the_times(aging: float, now: float) -> None:
    """A job of a class that it gains faster than the clock can say waits as any other; `wake` is later than now."""
    s = Scheduler(Fleet.regular(1, 1, 1), "heuristic", patience=0.1, sharing={"aging": aging, "queues": {"q": 0.5}})
    for name in "ab":
        s.submit(GangJob(name, "any", (1,)), 100.0, now=now)
    for later in (0.0, 50.0, 50.1, 1e4):
        s.decide(60.0, now=now + later)
        assert s.wake is not None and s.wake > s.now


RULES: list[dict[str, object]] = [
    {},
    {"aging": 50.0, "least_run": 30.0, "most_run": 100.0},
    {"queues": {"a": 0.5, "b": 0.3}, "aging": 70.0, "most_run": 80.0},
]


def test_nothing_starts_or_stops_before_the_wake() -> None:
    """While jobs end as expected, a decision before the next event and the wake does nothing; some at the wake do."""
    some = 0
    for seed in range(24):
        rng = random.Random(seed)
        sharing, price, patience = RULES[seed % 3], rng.choice([None, 0.0, 5.0, 60.0]), rng.choice([0.5, 2.0, 50.0])

        def new(at: dict[str, object] | None = None) -> Scheduler:
            s = Scheduler(Fleet.regular(2, 2, 4), "heuristic", price=price, patience=patience, sharing=sharing)  # noqa: B023
            if at is not None:
                s.restore(at)
            return s

        s = new()
        for i in range(20):
            comes = s.now + rng.expovariate(0.05)
            while (end := min((job.end for job in s._state.running.values()), default=inf)) <= comes:
                some += _idle_until(s, end, new, rng)
                for name in [name for name, job in s._state.running.items() if job.end == end]:
                    s.finish(name, now=end)
                while s.decide(60.0).stops:
                    pass
            s.submit(
                GangJob(f"j{i}", "any", (rng.choice([1, 2, 4, 8, 12]),)),
                rng.choice([5.0, 50.0, rng.uniform(1, 300)]),
                now=max(comes, s.now),
                priority=rng.choice([0, 0, 1]),
                queue=rng.choice("ab") if "queues" in sharing else "",
            )
            while s.decide(60.0).stops:
                pass
    assert some > 3


def _idle_until(s: Scheduler, end: float, new: Callable[..., Scheduler], rng: random.Random) -> bool:
    """Check that nothing changes before the wake or an end; return whether something does at the wake."""
    until = min(end, inf if s.wake is None else s.wake)
    for at in (nextafter(until, 0.0), rng.uniform(s.now, until)):
        if s.now < at < until:
            decision = new(s.snapshot()).decide(60.0, now=at)
            assert not decision.starts and not decision.stops
    twin = new(s.snapshot())
    assert twin.wake == s.wake
    decision = twin.decide(60.0, now=until)
    return until < end and bool(decision.starts or decision.stops)


def busy() -> SchedulerState:
    """Return three nodes of four GPUs, on which a and b run, and for which c and d wait."""
    sharing = {"queues": {"x": 0.5, "y": 0.5}, "fair_users": True}
    s = Scheduler(Fleet.regular(racks=1, nodes=3, gpus=4), price=1.0, sharing=sharing)
    for name, workers in (("a", 4), ("b", 6)):
        s.submit(GangJob(name, "any", (workers,)), 500.0, now=0.0, queue="x", user="ann")
    s.decide(60.0)
    for name, workers in (("c", 2), ("d", 8)):
        s.submit(GangJob(name, "any", (workers,)), 50.0, now=10.0, queue="y", user="bob")
    s._state.promises["d"] = 500.0
    assert [*s.running] == ["a", "b"] and [*s.waiting] == ["c", "d"]
    return s._state


def seen(state: SchedulerState) -> dict[str, Any]:
    """Return what is held, free and promised."""
    placer, accounts = state.placer, state.accounts
    return {
        "vacant": placer.vacant.tolist(),
        "taken": placer.taken.tolist(),
        "idle": [placer.idle(node) for node in range(3)],
        "seats": {name: {node: seat.gpus for node, seat in seats.items()} for name, seats in placer.running.items()},
        "holders": [dict(x) for x in state.holders],
        "held": dict(state.held),
        "running": dict(state.running),
        "waiting": dict(state.waiting),
        "keys": {name: state.queue.key(name) for name in state.waiting},
        "promises": dict(state.promises),
        "accounts": [(x.name, [*x.used], [*x.leaving]) for x in accounts.all],
        "counts": (state.idle, state.light, state.running.stoppable, state.running.logs),
    }


def start(state: SchedulerState, name: str, node: int, gpus: tuple[int, ...]) -> RunningJob:
    """Return a job as it would run on GPUs of a node, seated there."""
    request = state.waiting[name]
    assert state.placer.put(state.loose(request), {node: gpus})
    return RunningJob(request, len(gpus), state.now, state.now + 50.0, {node: gpus})


def change(state: SchedulerState, trial: Any) -> None:
    """Do all that a trial does: stop and start jobs, take and leave seats, close GPUs, hold a share."""
    trial.halt("a")
    trial.begin(start(state, "c", next(iter(trial.halted["a"].nodes)), (0, 1)))
    trial.unseat([state.running["b"]])
    assert trial.place(state.placed(state.waiting["d"], 8))
    trial.hold(state.waiting["d"], (8, 0, 0), 1)
    node = int(np.flatnonzero(state.placer.free)[0])
    free = state.placer.idle(node)[:1]
    trial.close(node, free, state.placer.vacant[:, node] // 2, GangJob("the room of d", "any", (8,)))


def test_what_is_not_kept_is_as_it_was() -> None:
    """After a trial all that jobs, nodes and queues hold is as before, and so it is where something is raised."""
    state = busy()
    before = seen(state)
    with state.trial() as trial:
        change(state, trial)
        after = seen(state)
        differs = {name for name in before if after[name] != before[name]}
        assert differs == {*before} - {"promises", "taken"} and [*trial.halted] == ["a"]
    assert seen(state) == before and not trial.halted
    with pytest.raises(ZeroDivisionError), state.trial() as trial:
        change(state, trial)
        1 / 0  # noqa: B018
    assert seen(state) == before


def test_what_is_held_for_a_job_counts_to_limits() -> None:
    """What another is to have counts to its limits from now on; what is given back does so once the job has left."""
    state = busy()
    with state.trial() as trial:
        trial.hold(state.waiting["d"], (8, 0, 0), 1)
        assert {x.leaving[0] for x in state.accounts.all} == {0}
        trial.hold(state.waiting["d"], (8, 0, 0), -1)
        assert {x.leaving[0] for x in state.accounts.all} == {0, 8}


def test_a_promise_is_given_again() -> None:
    """Who starts needs no promise, and has it again if the start is taken back."""
    state = busy()
    with state.trial() as trial:
        trial.halt("a")
        trial.halt("b")
        request = state.waiting["d"]
        nodes = {0: (0, 1, 2, 3), 1: (0, 1, 2, 3)}
        assert state.placer.put(state.loose(request), nodes)
        trial.begin(RunningJob(request, 8, 10.0, 60.0, nodes))
        assert not state.promises
    assert state.promises == {"d": 500.0}


def test_what_is_promised_meanwhile_is_taken_back() -> None:
    """A reservation that counts on stops that are taken back promises nothing, or all would wait for a time gone by."""
    state = busy()
    with state.trial() as trial:
        trial.halt("a")
        trial.halt("b")
        assert reserve(state, state.placed(state.waiting["d"], 8), state.promises).time == state.promises["d"] == 10.0
    assert state.promises == {"d": 500.0}


def test_what_is_tried_within_is_taken_back_alone() -> None:
    """A trial that is entered again keeps what was done before; what is kept within goes with the whole."""
    state = busy()
    before = seen(state)
    with state.trial() as trial:
        trial.halt("a")
        with trial:
            trial.halt("b")
            assert [*trial.halted] == ["a", "b"]
        assert [*trial.halted] == ["a"] and [*state.running] == ["b"]
        with trial:
            trial.halt("b")
            trial.keep()
        assert not state.running
    assert seen(state) == before


def test_some_are_taken_back_and_others_stay() -> None:
    """Of two stops and a start one stop is taken back, and all else is kept."""
    state = busy()
    with state.trial() as trial:
        trial.halt("b")
        node = next(iter(state.running["a"].nodes))
        trial.halt("a")
        trial.begin(start(state, "c", node, (0, 1)))
        trial.back(["nobody"], ["b"])
        trial.keep()
    assert {*state.running} == {"b", "c"} and {*state.waiting} == {"a", "d"}
    assert trial.halted.keys() == {"a"} and state.placer.running.keys() == {"b", "c"}


def test_a_stop_that_is_taken_back_delays_nobody() -> None:
    """A job with a grace is to stop for one that a window bars then; another one that ends before the window starts.

    With the grace of 50 s it would not: 10 + 60 + 50 > 100. The stop was taken back, so nobody waits for that grace.
    """
    s = Scheduler(Fleet.regular(racks=1, nodes=1, gpus=8), "heuristic", price=1.0)
    s.submit(GangJob("long", "any", (4,)), 1000.0, now=0.0, grace=50.0)
    s.decide(60.0)
    s.drain("node0", at=100.0, until=200.0, now=5.0)
    s.submit(GangJob("high", "any", (8,)), 60.0, now=10.0, priority=1)
    s.submit(GangJob("short", "any", (4,)), 60.0)
    decision = s.decide(60.0)
    assert [x.job for x in decision.starts] == ["short"] and not decision.stops and not decision.stopping
