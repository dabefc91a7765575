"""A log played once more: alike if nothing is changed, as argued by hand if something is."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob, Proximity
from gangplan.scheduler.journal.course import WITHDRAWN
from gangplan.scheduler.journal.history import RAN, WAITED, History, compared, groups, history_of, outcome_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import scheduler_of
from gangplan.simulator.metrics import summary


def live(scheduler: Scheduler, jobs: int, seed: int, state: Any = None) -> None:
    """Run a day: estimates are wrong, jobs have several numbers of workers, a node fails and comes back."""
    rng = np.random.default_rng(seed)
    work, left, since, ends, run = {}, {}, {}, list[Any](), 0
    given = sorted(
        [(float(t), "submit", f"{state or ''}j{i}") for i, t in enumerate(rng.uniform(0, 2000, jobs) + scheduler.now)]
        + [(700.0 + scheduler.now, "fail_node", 1), (900.0 + scheduler.now, "repair_node", 1)]
        + [(1500.0 + scheduler.now, "withdraw", f"{state or ''}j0")]
    )
    while given or ends:
        if given and (not ends or given[0][0] <= ends[0][0]):
            now, what, of = given.pop(0)
        else:
            now, number, of = heapq.heappop(ends)
            what = "finish"
            if run_of.get(of) != number:
                continue
        if what == "submit":
            workers = ((1,), (2,), (1, 2, 4), (6,))[rng.integers(4)]
            work[of] = left[of] = float(rng.exponential(200))
            seconds = None if rng.random() < 0.3 else work[of] * float(rng.uniform(0.5, 3))
            price = (None, 0.0, 30.0)[rng.integers(3)]
            scheduler.submit(GangJob(of, "m", workers), seconds, now=now, price=price, user=f"u{len(of) % 2}")
        elif what != "withdraw" or of in (*scheduler.waiting, *scheduler.running):
            for name in getattr(scheduler, what)(of, now=now) or ():
                del run_of[name]
            run_of.pop(of, None)
        decision = scheduler.decide(60.0, now=now)
        for stop in decision.stops:
            began, pays, rate = since[stop.job]
            left[stop.job] -= max(0.0, now - began - pays) * rate
            del run_of[stop.job]
        for start in decision.starts:
            job = scheduler._state.running[start.job]
            rate = start.degree / job.request.job.workers[-1] / job.slower
            since[start.job], run = (now, job.request.pays, rate), run + 1
            run_of[start.job] = run
            heapq.heappush(ends, (now + job.request.pays + left[start.job] / rate, run, start.job))


run_of: dict[str, int] = {}


def past(path: Path) -> History:
    """Return what a log tells."""
    return history_of(read_log(path))


@pytest.mark.parametrize("speeds", [None, Proximity()])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_changed_nothing_differs(tmp_path: Path, seed: int, speeds: Any) -> None:
    """With the same arguments each job starts and ends when it did, to rounding: truths are told from the log alone."""
    run_of.clear()
    live(Scheduler(Fleet.regular(2, 2, 4), speeds=speeds, log=tmp_path / "log"), 60, seed)
    then = past(tmp_path / "log")
    again = play(then, scheduler_of(read_log(tmp_path / "log")))
    assert sum(run.stopped for runs in then.course.runs.values() for run in runs) > 3
    assert again.course.first == pytest.approx(then.course.first)
    assert again.course.finish == pytest.approx(then.course.finish)
    assert len(then.course.finish) > 50
    for course in (then.course, again.course):
        whole = groups(then, again.course)[0]
        figures = summary(outcome_of(then, course))
        assert figures.mean_jct == pytest.approx(whole.after["mean_jct"])
        assert figures.jobs == whole.jobs


def test_a_log_that_begins_in_the_middle(tmp_path: Path) -> None:
    """A log of a scheduler that was restored first begins with who ran and waited, and plays on alike."""
    run_of.clear()
    first, fleet = Scheduler(Fleet.regular(2, 2, 4), price=20.0), Fleet.regular(2, 2, 4)
    for i in range(9):
        first.submit(GangJob(f"old{i}", "m", (3,)), 100.0 + i, now=float(i))
        first.decide(60.0)
    second = Scheduler(fleet, price=20.0, log=tmp_path / "log")
    second.restore(first.snapshot())
    for i in range(9):
        second.finish(min(second.running), now=300.0 + 50 * i)
        second.decide(60.0)
    then = past(tmp_path / "log")
    assert then.state is not None and then.begin == 8.0 and len(then.jobs) == 9
    again = play(then, scheduler_of(read_log(tmp_path / "log")))
    assert again.course.finish == pytest.approx(then.course.finish)
    dear = play(then, Scheduler(fleet, price=None))
    assert set(dear.course.finish) == set(then.course.finish)


def hand(path: Path, **options: Any) -> Scheduler:
    """Log a node of 2 GPUs: "long" on both from 0 to 100 s, "short" waits from 10 s and runs from 100 to 105 s."""
    scheduler = Scheduler(Fleet.regular(1, 1, 2), "heuristic", log=path, **options)
    scheduler.submit(GangJob("long", "m", (2,)), 1000.0, now=0.0, user="a")
    scheduler.decide(60.0)
    scheduler.submit(GangJob("short", "m", (2,)), 5.0, now=10.0, user="b")
    scheduler.decide(60.0)
    return scheduler


def test_another_price_by_hand(tmp_path: Path) -> None:
    """With a price of 3 s "short" runs at once; "long" stops at 10 s, has 90 s left and pays 3 s.

    So it runs from 15 to 108 s: the true 100 s of work, not the 1000 s that were expected, and the price on top.
    """
    scheduler = hand(tmp_path / "log")
    scheduler.finish("long", now=100.0)
    scheduler.decide(60.0)
    scheduler.finish("short", now=105.0)
    then = past(tmp_path / "log")
    again = play(then, Scheduler(then.fleet, "heuristic", price=3.0))
    assert again.course.first == {"long": 0.0, "short": 10.0}
    assert again.course.finish == pytest.approx({"short": 15.0, "long": 108.0})
    whole, *users = groups(then, again.course)
    assert (whole.before["mean_wait"], whole.after["mean_wait"]) == (45.0, 0.0)
    assert (whole.before["mean_jct"], whole.after["mean_jct"]) == pytest.approx((97.5, 56.5))
    assert (whole.before["stops"], whole.after["stops"]) == (0.0, 0.5)
    assert whole.after["gpu_hours"] == pytest.approx(2 * 108 / 3600)
    assert (whole.before["utilisation"], whole.after["utilisation"]) == (1.0, 1.0)
    assert [(group.by, group.name, group.jobs) for group in users] == [("user", "a", 1), ("user", "b", 1)]


def test_what_had_not_ended_is_in_no_mean(tmp_path: Path) -> None:
    """Who runs or waits when the log ends goes on as expected, and who was withdrawn goes when it went."""
    scheduler = hand(tmp_path / "log")
    scheduler.submit(GangJob("gone", "m", (2,)), 5.0, now=20.0)
    scheduler.decide(60.0)
    scheduler.withdraw("gone", now=30.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("quick", "m", (1,)), 1.0, now=40.0)
    scheduler.decide(60.0)
    scheduler.finish("long", now=50.0)
    scheduler.decide(60.0)
    scheduler.finish("quick", now=52.0)
    scheduler.decide(60.0)
    then = past(tmp_path / "log")
    assert {name: job.fate for name, job in then.jobs.items()}["short"] == RAN
    assert then.jobs["gone"].fate == WITHDRAWN
    again = play(then, scheduler_of(read_log(tmp_path / "log")))
    assert again.skipped == 0 and "gone" not in again.course.first
    both, others = compared(then, again.course)
    assert sorted(both) == ["long", "quick"] and others == {RAN: 1, WITHDRAWN: 1}
    # "short" was expected to run for 5 s from 52 s on, and it is played until then
    assert again.course.finish["short"] == pytest.approx(57.0)
    assert WAITED not in others


def test_a_loop_that_decides_later(tmp_path: Path) -> None:
    """If decisions followed events after 2 s in the log, they do so when it is played."""
    scheduler = Scheduler(Fleet.regular(1, 1, 2), "heuristic", log=tmp_path / "log")
    for i in range(4):
        scheduler.submit(GangJob(f"j{i}", "m", (1,)), 3.0, now=10.0 * i)
        scheduler.decide(60.0, now=10.0 * i + 2)
        scheduler.finish(f"j{i}", now=10.0 * i + 5)
        scheduler.decide(60.0, now=10.0 * i + 7)
    then = past(tmp_path / "log")
    assert then.lag == 2.0
    again = play(then, scheduler_of(read_log(tmp_path / "log")))
    assert again.course.first == {f"j{i}": 10.0 * i + 2 for i in range(4)}
