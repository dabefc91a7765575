"""What a log tells of the past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.plot.simulation import simulation_scene
from gangplan.scheduler.journal.history import course_figures, history_of, outcome_of, utilisation
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import scheduler_of


def test_runs_after_a_resize(tmp_path: Path) -> None:
    """Runs that begin and end after nodes came are told too: of three jobs of 10 s, one starts on the new node."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 2, 4), log=path)
    for name in "abc":
        scheduler.submit(GangJob(name, "m", (4,)), 10.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.resize(Fleet.regular(1, 3, 4), now=5.0)
    scheduler.decide(60.0)
    for i, name in enumerate("abc"):
        scheduler.finish(name, now=12.0 + i)
        scheduler.decide(60.0)
    past = history_of(read_log(path))
    assert past.course.first == {"a": 0.0, "b": 0.0, "c": 5.0}
    assert past.course.finish == {"a": 12.0, "b": 13.0, "c": 14.0}
    # 12, 13 and 9 seconds of work where 10 were expected
    assert {name: round(job.work, 9) for name, job in past.jobs.items()} == {"a": 1.2, "b": 1.3, "c": 0.9}
    # in 14 s jobs held 4 GPUs for 12, 13 and 9 s, of 8 GPUs for 5 s and 12 for 9 s
    assert utilisation(past, past.course) == pytest.approx(4 * (12 + 13 + 9) / (8 * 5 + 12 * 9))


@pytest.mark.parametrize("how", ["begin", "after", "array"])
def test_jobs_that_may_not_wait_yet(tmp_path: Path, how: str) -> None:
    """Jobs that are held back before they wait are told of, and go as they did when they are played again."""
    path = tmp_path / "log.jsonl"
    fleet = Fleet.regular(1, 1, 4)
    scheduler = Scheduler(fleet, log=path)
    scheduler.submit(GangJob("a", "m", (4,)), 10.0, now=0.0)
    job = GangJob("b", "m", (4,))
    if how == "array":
        scheduler.submit_array(job, 2, 10.0, most=1, user="me")
    else:
        scheduler.submit(job, 10.0, user="me", **({"begin": 10.0} if how == "begin" else {"after": ("a",)}))
    scheduler.decide(60.0)
    for i in range(len(scheduler.waiting) + 1):
        scheduler.finish(scheduler.running[0], now=10.0 * (i + 1))
        scheduler.decide(60.0)
    past = history_of(read_log(path))
    names = ["a", "b[0]", "b[1]"] if how == "array" else ["a", "b"]
    assert past.course.finish == {name: 10.0 * (i + 1) for i, name in enumerate(names)}
    assert past.jobs[names[-1]].user == "me"
    assert play(past, Scheduler(fleet)).course.finish == past.course.finish


def test_another_estimate_is_no_stop(tmp_path: Path) -> None:
    """A job that goes on after its expected end moved, as it ages and by two calls, has one run."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 2, 4), log=path)
    for i, seconds in enumerate((1.0, 2.0, 100.0)):  # what jobs like it took
        scheduler.submit(GangJob(f"old{i}", "m", (4,)), now=scheduler.now)
        scheduler.decide(60.0)
        scheduler.finish(f"old{i}", now=scheduler.now + seconds)
    begin = scheduler.now
    scheduler.submit(GangJob("a", "m", (4,)), now=begin)
    scheduler.decide(60.0)
    end = scheduler._state.running["a"].end
    scheduler.fail_node(1, now=begin + 20.0)
    assert scheduler._state.running["a"].end != end
    scheduler.change("a", 100.0, now=begin + 30.0)
    scheduler.change("a", price=5.0, now=begin + 40.0)
    scheduler.finish("a", now=begin + 50.0)
    runs = history_of(read_log(path)).course.runs["a"]
    spans = [(run.start - begin, run.end - begin) for run in runs]
    assert spans == [(0, 50)] and not any(run.stopped for run in runs)


def test_workers_without_gpus_hold_none(tmp_path: Path) -> None:
    """A task of two workers with cores alone holds no GPU beside a job that holds all of them for half of the time."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 1, 4, cpu=8.0), log=path)
    scheduler.submit(GangJob("cores", "m", (2,), worker=Demand(gpu=0, cpu=1.0)), 20.0, now=0.0)
    scheduler.submit(GangJob("gpus", "m", (4,)), 10.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.finish("gpus", now=10.0)
    scheduler.finish("cores", now=20.0)
    past = history_of(read_log(path))
    assert utilisation(past, past.course) == pytest.approx(0.5)
    assert course_figures(past, past.course, ["cores"])["gpu_hours"] == 0
    simulation_scene({"": outcome_of(past, past.course)})


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
