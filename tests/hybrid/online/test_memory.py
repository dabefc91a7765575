"""What the scheduler remembers: little, however long it runs, and no snapshot leads it astray."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from gangplan.hybrid.online import Scheduler, View
from gangplan.hybrid.online.book import RECENT
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob


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


def state() -> dict[str, Any]:
    """Return a snapshot with a job of each kind."""
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", price=1.0)
    go(scheduler, 0, 2)
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
    for place, value in itertools.product(places(good)[1:], VALUES):
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


def leave(view: View) -> Any:
    """End the program."""
    raise SystemExit(3)


def close(view: View) -> Any:
    """Do as generators do that are closed."""
    raise GeneratorExit


@pytest.mark.parametrize("act", [leave, close, lambda view: itertools.repeat(1.0)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_policies_that_end_programs(act: Callable[[View], Any]) -> None:
    """A policy that would end the program, or whose answer has no end, is left out like any that fails."""

    class Policy:
        rank = staticmethod(act)

    scheduler = Scheduler(Fleet.regular(1, 1, 2), Policy())
    scheduler.submit(GangJob("a", "m", (1,)), 1.0)
    decision = scheduler.decide(20.0)
    assert [start.job for start in decision.starts] == ["a"]
    assert decision.tier == "heuristic" and decision.notes[0].startswith("policy raised")


def test_ctrl_c_amid_a_policy() -> None:
    """Ctrl-C is for whoever called."""

    class Policy:
        def rank(self, view: View) -> Any:
            raise KeyboardInterrupt

    scheduler = Scheduler(Fleet.regular(1, 1, 2), Policy())
    scheduler.submit(GangJob("a", "m", (1,)), 1.0)
    with pytest.raises(KeyboardInterrupt):
        scheduler.decide(20.0)
