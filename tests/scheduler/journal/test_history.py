"""What a log tells of the past."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.plot.simulation import simulation_scene
from gangplan.scheduler.journal.figures import course_figures, outcome_of, utilisation
from gangplan.scheduler.journal.history import history_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log


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
