"""The transaction on the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.starting.reservations import reserve
from gangplan.scheduler.state import SchedulerState
from gangplan.scheduler.stopping.running_jobs import RunningJob


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
