"""Figures of a log against an integral of their own, and a control against the log, for each kind of event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler.journal.figures import course_figures, utilisation
from gangplan.scheduler.journal.history import history_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import scheduler_of


class Watched:
    """Pass calls on to a scheduler, and integrate what is held and what there is, from who holds which GPU."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.of, self.held, self.there, self.stops = scheduler, 0.0, 0.0, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            state = self.of._state
            then, there = state.now, state.gpus
            held = sum(gpu >= 0 for here in state.holders for gpu in here)
            answer = getattr(self.of, name)(*args, **options)
            self.held += held * (self.of.now - then)
            self.there += there * (self.of.now - then)
            self.stops.update(stop.cause for stop in getattr(answer, "stops", ()))
            return answer

        return call


def job(name: str, workers: int = 8, **needs: Any) -> GangJob:
    """Return a gang of single GPUs."""
    return GangJob(name, "m", (workers,), **needs)


def terms(s: Any) -> None:
    """Submit jobs with each of their terms, among them one without GPUs."""
    fields = {"user": "ann", "priority": 2, "limit": 9e4, "title": "t", "within": "node", "group": 2, "mixed": True}
    for i, (name, value) in enumerate(fields.items()):
        s.submit(job(f"t{i}", 4), 500.0, now=10.0 + i, **{name: value})
    s.submit(job("queued", 4), 500.0, queue="q", topology="preferred", price=30.0, together=False)
    s.submit(job("wide", 4), 500.0, within="rack", topology="required")
    s.submit(job("cores", 2, worker=Demand(gpu=0, cpu=1.0)), 500.0)


def held(s: Any) -> None:
    """Submit jobs that may not wait yet, and an array; one of them is withdrawn before it may."""
    s.submit(job("first"), 600.0, now=10.0)
    s.submit(job("second"), 600.0, after=("first",))
    s.submit(job("third"), 600.0, begin=300.0)
    s.submit(job("never"), 600.0, begin=1e9)
    s.submit_array(job("some", 4), 3, 600.0, most=1, user="ann")
    s.submit_array(job("all", 2), 3, 600.0)
    s.decide(60.0)
    s.withdraw("never", now=20.0)
    s.decide(60.0, now=300.0)


def windows(s: Any) -> None:
    """Drain, reserve, undrain and cancel."""
    s.drain("node0", at=100.0, until=4000.0, now=5.0)
    s.reserve(1, 200.0, 9000.0, name="course", users=["ann"])
    s.decide(60.0)
    for now in (100.0, 200.0):
        s.decide(60.0, now=now)
    s.submit(job("later"), 600.0, now=1000.0)
    s.decide(60.0)
    s.undrain("node0", now=2000.0)
    s.cancel("course")


def change_running(s: Any) -> None:
    """Change a running job, twice."""
    s.change("b", user="w", now=1000.0)
    s.decide(60.0)
    s.change("b", 18000.0, now=5000.0)
    s.decide(60.0)
    s.change("b", price=5.0, now=6000.0)


def change_waiting(s: Any) -> None:
    """Change a job that waits."""
    s.submit(job("d", 24), 600.0, now=10.0)
    s.decide(60.0)
    s.change("d", 700.0, now=100.0, priority=1)


def withdraw(s: Any) -> None:
    """Withdraw a job that runs and one that waits."""
    for name in "de":
        s.submit(job(name), 600.0, now=10.0)
    s.decide(60.0)
    s.withdraw("d", now=100.0)
    s.decide(60.0)
    s.submit(job("f"), 600.0, now=110.0)
    s.withdraw("f", now=120.0)


def fail_idle(s: Any) -> None:
    """Have a node fail on which nobody is."""
    s.fail_node("node2", now=100.0)
    s.repair_node("node2", now=2000.0)


def fail_busy(s: Any) -> None:
    """Have a node fail on which a job runs, which starts anew."""
    s.fail_node("node0", now=100.0)
    s.decide(60.0)
    s.repair_node("node0", now=200.0)


def replaced(s: Any) -> None:
    """Have a gang go on elsewhere after its node failed."""
    s.fail_node("node0", replace=True, now=100.0)


def resize(s: Any) -> None:
    """Have nodes come, a job start there, and a node go."""
    s.resize(Fleet.regular(racks=1, nodes=5, gpus=8), now=1000.0)
    for name in "def":
        s.submit(job(name), 600.0, now=1010.0)
    s.decide(60.0)
    s.resize(Fleet.regular(racks=1, nodes=4, gpus=8), now=1100.0)


def moves(s: Any) -> None:
    """Carry out moves that free a node."""
    s.submit(job("p", 4), 36000.0, now=10.0, price=20.0)
    s.submit(job("q", 4), 36000.0, now=10.0, price=20.0)
    s.decide(60.0)
    s.finish("b", now=5000.0)
    s.decide(60.0)
    s.apply(s.defragment(domain="node2"))


def stops(s: Any) -> None:
    """Have a short job stop a long one, and one of a higher class."""
    s.change("b", price=10.0, now=100.0)
    s.submit(job("short", 24), 100.0, now=5000.0, priority=1)
    s.submit(job("d"), 100.0)


def saved(s: Any) -> None:
    """Append the whole state, and take it back."""
    s.checkpoint()
    s.restore(s.of.snapshot())


def report(s: Any) -> None:
    """Report a speed."""
    s.report("b", 2.0, now=50.0)


EVENTS: list[Callable[[Any], None]] = [
    terms, held, windows, change_running, change_waiting, withdraw, fail_idle, fail_busy, replaced, resize, moves,
    stops, saved, report,
]  # fmt: skip
CAUSES = ("gain", "priority", "reclaim", "turn", "move", "drain")
OPTIONS: dict[str, dict[str, Any]] = {
    "told": {},
    "price": {"price": 60.0},
    "history": {"durations": "history", "price": 60.0},
    "turns": {"price": 10.0, "sharing": {"least_run": 100.0, "most_run": 3000.0, "fair_users": True}},
}


def played(path: Path, event: Callable[[Any], None], decides: bool, **options: Any) -> Watched:
    """Log two jobs of a node each, an event, with or without a decision after it, and the ends of all jobs."""
    fleet = Fleet.regular(racks=1, nodes=3, gpus=8, cpu=8.0)
    s = Watched(Scheduler(fleet, "heuristic", log=path, **options))
    s.submit(job("b"), 36000.0, now=0.0, user="u")
    s.submit(job("c"), 36000.0, user="v")
    s.decide(60.0)
    event(s)
    if decides:
        s.decide(60.0)
    now = 20000.0
    while s.of.running:
        now += 1000.0
        s.finish(min(s.of.running), now=now)
        s.decide(60.0, now=now + 7.0 * (now % 2000.0 == 0.0))  # at once, or a little later
    assert not s.of.waiting
    return s


@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("event", EVENTS)
def test_each_kind_of_event(tmp_path: Path, event: Callable[[Any], None], options: str, decides: bool) -> None:
    """A log tells what was held and stopped, and played again with nothing changed it goes as it went."""
    path = tmp_path / "log"
    live = played(path, event, decides, **OPTIONS[options])
    log = read_log(path)
    past = history_of(log)
    again = play(past, scheduler_of(log))
    assert again.skipped == 0
    causes = (Counter(run.cause for runs in c.runs.values() for run in runs) for c in (past.course, again.course))
    assert [{x: n for x, n in each.items() if x in CAUSES} for each in causes] == [live.stops] * 2
    for course in (past.course, again.course):
        figures = course_figures(past, course, [*past.jobs])
        assert figures["gpu_hours"] == pytest.approx(live.held / 3600)
        assert utilisation(past, course) == pytest.approx(live.held / live.there) and live.held <= live.there
        assert figures["stops"] * len(past.jobs) == pytest.approx(live.stops.total())
    assert again.course.first == pytest.approx(past.course.first)
    assert again.course.finish == pytest.approx(past.course.finish)
