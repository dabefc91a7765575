"""Waiting jobs are predicted anew as others finish: who is alike goes by submission."""

from __future__ import annotations

import json

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.durations.again import MOST

AMPLE = 60.0
"""Deadline of a decision that no load of the machine cuts, seconds."""


def busy(price: float | None = None) -> Scheduler:
    """Return one GPU that is held, and a job that has waited for it since nothing was known of durations."""
    scheduler = Scheduler(Fleet.regular(1, 1, 1), durations="history", price=price)
    scheduler.submit(GangJob("run0", "any", (1,)), now=0.0)
    scheduler.decide(AMPLE)
    scheduler.submit(GangJob("first", "any", (1,)))
    return scheduler


def go_on(scheduler: Scheduler) -> str:
    """Have the job that runs finish in 60 s, one like it come, and return who starts."""
    scheduler.finish(scheduler.running[0], now=scheduler.now + 60)
    scheduler.submit(GangJob("later", "any", (1,)))  # it is known now that jobs are short
    return scheduler.decide(AMPLE).starts[0].job


def test_alike_jobs_go_by_submission() -> None:
    """A job that came before anything was known is not passed by one that came after, of which the same is known."""
    scheduler = busy()
    believed = scheduler._state.waiting["first"].work
    scheduler.decide(AMPLE)
    assert scheduler._state.waiting["first"].work == believed  # nobody finished
    assert go_on(scheduler) == "first"
    late = scheduler._state.waiting["later"]
    assert max(late.work) < max(believed)


def test_jobs_that_may_be_stopped_keep_what_they_came_with() -> None:
    """Where stops have a price the later job goes first, as it is predicted to be shorter."""
    assert go_on(busy(price=60.0)) == "later"


def test_turns() -> None:
    """So many jobs a decision are predicted anew, and a scheduler restored in between goes on as the first does."""
    scheduler = busy()
    for i in range(2 * MOST):
        scheduler.submit(GangJob(f"job{i}", "any", (1,)))
    scheduler.finish("run0", now=60.0)
    before = {name: request.work for name, request in scheduler._state.waiting.items()}
    other = Scheduler(Fleet.regular(1, 1, 1), durations="history")
    scheduler.decide(AMPLE)
    other.restore(json.loads(json.dumps(scheduler.snapshot())))
    renewed = sum(request.work != before[name] for name, request in scheduler._state.waiting.items())
    assert renewed == MOST - 1  # and the one that started
    for _ in range(2):
        assert scheduler.decide(AMPLE).starts == other.decide(AMPLE).starts == ()
    assert scheduler.snapshot() == other.snapshot()
    assert all(request.work != before[name] for name, request in scheduler._state.waiting.items())


def test_what_is_no_turn() -> None:
    """A snapshot with a turn that cannot be is refused."""
    saved = busy().snapshot()
    saved["durations"]["again"] = [0, -1, 0]
    with pytest.raises(ValueError, match="snapshot"):
        busy().restore(saved)
